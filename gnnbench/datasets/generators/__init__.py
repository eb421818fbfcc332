"""Generators of twins, R-MAT graphs, and seeded replacements for data that a source lacks."""
