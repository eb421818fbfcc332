"""GNN models, written alike for every framework, layer by layer on blocks."""
