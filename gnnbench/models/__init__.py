"""GNN models on blocks, with the same layers in every framework."""
