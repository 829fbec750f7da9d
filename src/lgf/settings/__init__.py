"""Shared parts of the settings: types with ranges, TOML files, and the settings of the flow."""
