"""Context-free grammars of equations: rules, derivations, parsing."""
