"""The graph store: one folder a graph, written once, mapped read-only."""
