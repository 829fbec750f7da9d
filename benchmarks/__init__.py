"""How this project measures itself: `python -m benchmarks COMMAND`, from the root of the repository."""
