"""The graph store: one folder per graph, written once, mapped read-only."""
