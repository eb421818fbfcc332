"""The run folders that are committed below ``results/``."""

from pathlib import Path

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
