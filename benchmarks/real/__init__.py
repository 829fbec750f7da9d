"""Benchmark 5: real records; README.md has the rules of selection, split and score."""
