"""Sampler stage: seeds of a batch in, the batch out."""
