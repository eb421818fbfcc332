"""The version of gnnbench."""

__version__ = "0.1.0"
