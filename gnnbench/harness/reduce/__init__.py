"""Reduce the journal of a run to its tables: one module per table or group of metrics."""
