"""Samplers as a library: one short file per published method, built by name."""
