"""Hostile inputs for every door of the package, and a watch on what they do; see `benchmarks.fuzz_doors`."""
