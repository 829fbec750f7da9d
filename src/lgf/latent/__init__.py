"""Networks on derivations: autoencoder, discrete flow, guidance. Public functions take and return arrays."""
