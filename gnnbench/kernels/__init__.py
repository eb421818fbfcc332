"""Typed Python face of the native operators."""
