"""The papers' claims as data, what measures them, and what a folder of results says of each."""
