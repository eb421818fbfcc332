"""Feature stage: a batch's input nodes to feature rows on the compute device."""
