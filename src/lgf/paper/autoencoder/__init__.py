"""2.2: the grammar quantisation autoencoder (GQAE)."""
