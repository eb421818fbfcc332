"""Published systems as compositions of stages, found through entry points."""
