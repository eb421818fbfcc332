"""Graph store, importers, manifests and twins."""
