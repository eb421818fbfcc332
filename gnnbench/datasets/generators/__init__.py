"""Graphs made on the spot: twins, R-MAT, and seeded stand-ins for what a source lacks."""
