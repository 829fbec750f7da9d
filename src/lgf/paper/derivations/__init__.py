"""2.1: derivations of a grammar as rows of rule numbers, and back."""
