"""Clocks, counters and the record of the machine."""
