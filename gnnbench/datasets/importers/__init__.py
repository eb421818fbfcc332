"""Readers of what others store: raw dataset folders, edge lists, ``.npz``, objects in Python."""
