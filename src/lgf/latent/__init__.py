"""Trained networks on derivations, run by NumPy: autoencoder, discrete flow, guidance."""
