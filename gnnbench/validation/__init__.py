"""Correctness gates: nothing is timed before it is checked."""
