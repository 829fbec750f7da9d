"""The search: constants, objective, candidates, proposers, selection."""
