"""Other programs on the same data: each a module that runs in an environment of its own, JSON in and JSON out."""
