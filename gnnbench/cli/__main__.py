"""``python -m gnnbench.cli``."""

from gnnbench.cli import main

main()
