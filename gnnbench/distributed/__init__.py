"""Schedules that run in several processes: ranks, producers and consumers, partitions."""
