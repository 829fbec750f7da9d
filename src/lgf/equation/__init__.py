"""Equations with open constants and with values: structure, complexity, simplification."""
