"""Latent Grammar Flow: ordinary differential equations from noisy measurements."""

__version__ = "0.1.0"
