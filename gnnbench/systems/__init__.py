"""The systems, one short file each: its paper, its stages, and what is its own."""
