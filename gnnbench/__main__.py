"""``python -m gnnbench``: the command line."""

from gnnbench.cli import main

main()
