"""Kernels compared with the measured peaks of a machine: peaks, work and hardware counters."""
