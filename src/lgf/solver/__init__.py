"""Solving equations: register programs, compiled kernels, trajectories, stability."""
