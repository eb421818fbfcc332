"""Packages of others, begun: what ``gnnbench new`` writes."""
