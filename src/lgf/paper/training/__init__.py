"""Training of the paper's models, in torch: the networks' losses, and the stages from a recipe to a model."""
