"""The run folders that are committed below ``results/``."""

import shutil
from pathlib import Path

from gnnbench.analysis import headlines
from gnnbench.analysis.report import COMMITTED, README
from gnnbench.schema import reader

ROOT = Path(__file__).parents[2]
RUNS = sorted(
    path.parent
    for path in (ROOT / "results").rglob("cells.csv")
    if not any(part.startswith("run-") for part in path.parts)
)


def name(folder: Path) -> str:
    """The path of a folder below ``results/``."""
    return folder.relative_to(ROOT / "results").as_posix()


def largest_run_by_figure() -> dict[str, Path]:
    """For each kind of figure the run with the most cells whose definition has it."""
    figures: dict[str, Path] = {}
    for folder in sorted(RUNS, key=lambda folder: (folder / "cells.csv").read_bytes().count(b"\n")):
        figures |= dict.fromkeys(reader.read_record(folder).experiment.figures, folder)
    return figures


def copy_headlines(root: Path) -> None:
    """Copy to ``root`` the README and the runs that it and the list of results show."""
    selection = headlines.selection()
    runs = {row.run for group in selection.group for row in group.row}
    runs |= {Path(figure.path).parents[1].as_posix() for figure in selection.figure}
    for run in runs:
        shutil.copytree(ROOT / COMMITTED / run, root / COMMITTED / run)
    shutil.copy(ROOT / README, root)
