"""gnnbench: benchmarking and reproduction suite for sampling-based GNN training systems."""

__version__ = "0.1.0"
