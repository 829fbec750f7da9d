"""What settings of all packages share: types with ranges, TOML files, and the settings of the flow."""
