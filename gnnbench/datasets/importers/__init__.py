"""Importers of raw dataset folders, edge lists, ``.npz`` and other files, and Python objects."""
