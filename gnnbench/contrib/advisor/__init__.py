"""Which composition of stages a graph asks for, by a model that can be checked by hand."""
