"""Training of a model from a recipe."""
