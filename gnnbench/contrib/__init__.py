"""Additions that no experiment of the papers needs."""
