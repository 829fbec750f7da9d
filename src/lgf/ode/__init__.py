"""Equations: expressions, skeletons, programs, solving, stability."""
