"""Schedule stage: how the phases of an epoch's batches follow one another."""
