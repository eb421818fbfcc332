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

# Without the time and the version that would make the bytes of equal figures differ.
METADATA = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
SUFFIXES = (".png", ".svg")


def draw(folder: Path, figures: Collection[str] = (), pdf: bool = False) -> list[Path]:
    """Draw ``figures`` of a run, by default those of its definition, as PNG and SVG.

    ``pdf`` draws them for a column of a paper instead, as PDF. Returns the paths of the files.
    Figures without data are left out. Raises ``UsageError`` for an unknown figure, a folder without
    results or a folder that cannot be written.
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
        figure = make(name, run, pdf)
        if figure is None:
            continue
        try:
            written += save(figure, folder / "figures" / name, (".pdf",) if pdf else SUFFIXES)
        except OSError as error:
            raise UsageError(
                f"cannot write the figures to '{folder}' ({(error.strerror or '').lower()}); free"
                f" space, then 'gnnbench plot {folder}' draws them"
            ) from None
    return written


def make(name: str, run: Run, pdf: bool = False) -> Figure | None:
    """A figure of a run, for a screen or for a column of a paper; None without data."""
    from importlib import import_module

    from gnnbench.analysis.plots.page import COLUMN, SCREEN, fitted

    module = import_module(f"gnnbench.analysis.plots.{name}")
    return fitted(lambda page: module.figure(run, page), COLUMN if pdf else SCREEN)


def save(figure: Figure, stem: Path, suffixes: Collection[str] = SUFFIXES) -> list[Path]:
    """Write a figure as ``STEM.png`` and ``STEM.svg``, with equal bytes for an equal figure.

    A PDF has its fonts as TrueType, which publishers ask for.
    """
    import matplotlib

    from gnnbench.core.files import atomic_path

    paths = []
    with matplotlib.rc_context(
        {"svg.hashsalt": "gnnbench", "svg.fonttype": "none", "pdf.fonttype": 42}
    ):
        for suffix in suffixes:
            path = stem.with_suffix(suffix)
            with atomic_path(path) as temporary:
                figure.savefig(temporary, format=suffix[1:], dpi=150, metadata=METADATA[suffix])
            paths.append(path)
    return paths
