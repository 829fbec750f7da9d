"""Smooth records: the state and its derivatives at the sample times."""
