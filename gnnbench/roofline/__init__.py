"""Where kernels stand below what the machine can do at most: ceilings, kernels, work, counters."""
