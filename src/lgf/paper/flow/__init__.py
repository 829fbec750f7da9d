"""2.4: the discrete flow on latent tokens, its predictors and their guidance."""
