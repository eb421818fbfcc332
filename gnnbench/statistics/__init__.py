"""Statistics of comparisons: estimates with intervals, stopping rule, noise of the machine."""
