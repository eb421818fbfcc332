"""Choose the stages for a graph with an analytical cost model."""
