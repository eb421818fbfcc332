"""Clocks, stopping rule, statistics and the record of the machine."""
