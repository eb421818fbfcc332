"""Figures, one file per kind; they read only what ``gnnbench.results`` wrote."""
