"""A comparison's tables on the terminal, and its figure beside it."""

from __future__ import annotations

from pathlib import Path

from gnnbench.cli.common import print_part
from gnnbench.files import ensure_folder
from gnnbench.plots import machines as plot
from gnnbench.plots import save
from gnnbench.results import across
from gnnbench.results.reader import read_machines


def show(folder: Path) -> None:
    """Print what a run of several machines came to, and draw it. Raises ``UsageError``."""
    run = read_machines(folder)
    for part in across.tables(run.machines):
        print_part(part)
    for line in across.remarks(run):
        print(line)
    if not across.timed(across.settings(run.machines)):
        return  # nothing to draw
    figures = folder / "figures"
    ensure_folder(figures)
    for path in save(plot.figure(run), figures / "machines"):
        print(path)
