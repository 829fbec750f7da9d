"""The search for systems with one state that was not measured."""
