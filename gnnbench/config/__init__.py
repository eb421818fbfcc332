"""From a TOML definition and overrides to a typed experiment and its cells."""
