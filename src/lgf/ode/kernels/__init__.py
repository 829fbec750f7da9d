"""Compiled numerical kernels: arrays in, arrays out."""
