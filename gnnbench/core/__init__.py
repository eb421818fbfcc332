"""Types and helpers that every package uses."""
