"""Proposers of skeletons."""
