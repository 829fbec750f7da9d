"""What a grammar can say about a frame: terms, bits, derivations, behaviour, corpus."""
