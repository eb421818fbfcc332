"""Slow reference implementations of operators and stages, the oracles of the tests."""
