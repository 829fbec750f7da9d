"""Fitting constants to a record."""
