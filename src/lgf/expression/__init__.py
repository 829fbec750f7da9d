"""Immutable expressions: the tree, its text, its canonical form, its values."""
