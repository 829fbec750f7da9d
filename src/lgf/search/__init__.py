"""The search for an equation: proposers, evaluation, selection."""
