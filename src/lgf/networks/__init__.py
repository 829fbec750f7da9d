"""The networks in torch, for training only; `lgf.latent` runs the trained weights with NumPy."""
