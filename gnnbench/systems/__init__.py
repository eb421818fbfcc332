"""Published systems as compositions of stages, found through the entry point ``gnnbench.systems``."""
