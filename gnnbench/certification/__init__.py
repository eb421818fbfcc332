"""Certificates: what a sampler samples, property by property."""
