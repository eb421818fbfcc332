"""Figures, one file per kind; they read only what ``gnnbench.analysis`` wrote."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnnbench.core import names
from gnnbench.core.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURES = (
    "breakdown", "loss", "sampling", "cache", "match_degree", "bandwidth", "schedules", "roofline",
    "convergence", "scalability", "memory",
)  # fmt: skip


def draw(folder: Path, figures: Collection[str] = ()) -> list[Path]:
    """Draw figures of a run (all that its definition asks for, unless named) as PNG and SVG.

    Returns the paths of the files; a figure for which the run has no data is left out. Raises
    ``UsageError`` for an unknown figure, a folder without results or one that cannot be written.
    """
    from gnnbench.analysis.plots import style
    from gnnbench.core.files import ensure_folder
    from gnnbench.schema import reader

    run = style.labelled(style.short_names(reader.read(folder)))
    chosen = figures or run.record.get("experiment", {}).get("figures") or FIGURES
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
                f"cannot write the figures to '{folder}' ({(error.strerror or '').lower()}); make"
                f" room, then 'gnnbench plot {folder}' draws them"
            ) from None
    return written


def _make(name: str, run: object) -> Figure | None:
    from importlib import import_module

    figure: Figure | None = import_module(f"gnnbench.analysis.plots.{name}").figure(run)
    return figure


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write a figure as ``STEM.png`` and ``STEM.svg``, with equal bytes for an equal figure."""
    import matplotlib

    from gnnbench.core.files import atomic_path

    paths = []
    settings: Any = {"svg.hashsalt": "gnnbench", "svg.fonttype": "none"}
    with matplotlib.rc_context(settings):
        for suffix in (".png", ".svg"):
            path = stem.with_suffix(suffix)
            metadata = {"Date": None} if suffix == ".svg" else {"Software": None}
            with atomic_path(path) as temporary:
                figure.savefig(
                    temporary, format=suffix[1:], dpi=150, bbox_inches="tight", metadata=metadata
                )
            paths.append(path)
    return paths
