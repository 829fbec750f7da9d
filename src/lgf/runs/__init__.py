"""Requests, runs, and run folders."""
