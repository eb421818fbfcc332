"""Several machines, emulated on one by network namespaces (docs/several-machines.md)."""
