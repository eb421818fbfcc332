"""FastSample's distributed part: partitions, sampling and features over a process group."""
