"""Imports of other packages, with what they need to be imported here."""
