"""Figures of a run, one module for each kind. They read only the tables of the run."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from gnnbench.core import names
from gnnbench.core.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from gnnbench.schema.reader import Run

FIGURES = (
    "breakdown", "loss", "sampling", "cache", "match_degree", "bandwidth", "schedules", "roofline",
    "convergence", "scalability", "memory",
)  # fmt: skip


def draw(folder: Path, figures: Collection[str] = ()) -> list[Path]:
    """Draw ``figures`` of a run, by default those of its definition, as PNG and SVG.

    Returns the paths of the files. Figures without data are left out. Raises ``UsageError`` for an
    unknown figure, a folder without results or a folder that cannot be written.
    """
    from gnnbench.analysis.plots import style
    from gnnbench.core.files import ensure_folder
    from gnnbench.schema import reader

    run = style.labelled(style.short_names(reader.read(folder)))
    chosen = figures or run.record.experiment.figures or FIGURES
    for name in chosen:
        names.check("figure", name, FIGURES)
    ensure_folder(folder / "figures")
    written: list[Path] = []
    for name in chosen:
        figure = _make(name, run)
        if figure is None:
            continue
        try:
            written += save(figure, folder / "figures" / name)
        except OSError as error:
            raise UsageError(
                f"cannot write the figures to '{folder}' ({(error.strerror or '').lower()}); free"
                f" space, then 'gnnbench plot {folder}' draws them"
            ) from None
    return written


def _make(name: str, run: Run) -> Figure | None:
    from importlib import import_module

    figure: Figure | None = import_module(f"gnnbench.analysis.plots.{name}").figure(run)
    return figure


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write a figure as ``STEM.png`` and ``STEM.svg``, with equal bytes for an equal figure."""
    import matplotlib

    from gnnbench.core.files import atomic_path

    paths = []
    with matplotlib.rc_context({"svg.hashsalt": "gnnbench", "svg.fonttype": "none"}):
        for suffix in (".png", ".svg"):
            path = stem.with_suffix(suffix)
            metadata = {"Date": None} if suffix == ".svg" else {"Software": None}
            with atomic_path(path) as temporary:
                figure.savefig(
                    temporary, format=suffix[1:], dpi=150, bbox_inches="tight", metadata=metadata
                )
            paths.append(path)
    return paths
