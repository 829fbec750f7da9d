"""Networks on derivations: autoencoder, discrete flow, guidance. Arrays in and out; tensors stay inside."""
