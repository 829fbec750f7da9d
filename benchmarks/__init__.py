"""Benchmarks of the project: `python -m benchmarks COMMAND`, from the root of the repository."""
