"""A comparison's tables on the terminal, and its figure."""

from __future__ import annotations

from pathlib import Path

from gnnbench.analysis import multi_machine
from gnnbench.analysis.plots import machines as plot
from gnnbench.analysis.plots import save
from gnnbench.core.console import print_part
from gnnbench.core.files import ensure_folder
from gnnbench.schema.reader import read_machines


def show(folder: Path) -> None:
    """Print what a run of several machines came to, and draw it. Raises ``UsageError``."""
    run = read_machines(folder)
    for part in multi_machine.tables(run.machines):
        print_part(part)
    for line in multi_machine.remarks(run):
        print(line)
    if not multi_machine.with_times(multi_machine.settings(run.machines)):
        return  # nothing to draw
    figures = folder / "figures"
    ensure_folder(figures)
    for path in save(plot.figure(run), figures / "machines"):
        print(path)
