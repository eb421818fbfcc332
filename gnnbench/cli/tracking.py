"""``gnnbench track`` and ``gnnbench history``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from gnnbench.cli import completing
from gnnbench.cli.formats import FORMAT, print_document, print_tables
from gnnbench.core.console import print_json, print_part, room, say
from gnnbench.core.errors import UsageError

if TYPE_CHECKING:
    from gnnbench.analysis.track import Track


RUNS = typer.Argument(
    autocompletion=completing.runs,
    help="Runs: folders, folders of runs, experiments (all their runs), latest, latest~1.",
)
OUT = typer.Option(help="Folder of the results.")
FIGURE = typer.Option(
    help="File to draw, as PNG and SVG. Default: the command's name in the results' folder."
)


def track(
    runs: Annotated[list[str], RUNS],
    out: Annotated[Path, OUT] = Path("results"),
    figure: Annotated[Path | None, FIGURE] = None,
    format: Annotated[Literal["table", "json", "csv", "markdown", "latex"], FORMAT] = "table",
) -> None:
    """Show how the speed-ups of cells changed over runs, as tables and a figure.

    Cells are matched as by 'gnnbench compare', and runs are ordered by their start. Each ratio is
    compared with that of the last change: it is 'faster' or 'slower' if the two intervals do not
    overlap. Versions of packages may differ; the table shows which did. A ratio of other work, of
    another reference or on another GPU model starts anew.
    """
    from gnnbench.analysis import run_names
    from gnnbench.analysis import track as tracking
    from gnnbench.schema import reader

    tracked = tracking.track(map(reader.read, run_names.find_all(runs, out)))
    _show(tracked, _draw(tracked, out / "track" if figure is None else figure), format)


def history(
    runs: Annotated[list[str], RUNS],
    out: Annotated[Path, OUT] = Path("results"),
    figure: Annotated[Path | None, FIGURE] = None,
    page: Annotated[
        Path | None, typer.Option(help="Also write a Markdown page: changes, curves, tables.")
    ] = None,
    format: Annotated[Literal["table", "json", "csv", "markdown", "latex"], FORMAT] = "table",
) -> None:
    """Show how the speed of a peer changed over its versions, as tables and a figure.

    Measure first: 'gnnbench run sampling --systems pyg --env old=.venv-old --env older=PATH', with
    an environment for each version. The versions of a cell are ordered, and each is compared with
    that of the last change: it is 'faster' or 'slower' if the intervals of their speed-ups over
    the version of the run do not overlap.
    """
    from gnnbench.analysis import history as versions
    from gnnbench.analysis import run_names
    from gnnbench.core.files import write_text
    from gnnbench.schema import reader

    if page is not None:
        _make_folder("--page", page)
    tracked = versions.history(map(reader.read, run_names.find_all(runs, out)))
    paths = _draw(tracked, out / "history" if figure is None else figure)
    if page is not None:
        drawn = next(path for path in paths if path.suffix == ".svg")
        write_text(page, versions.page(tracked, os.path.relpath(drawn, page.parent)))
        paths.append(page)
    _show(tracked, paths, format)


def _show(tracked: Track, paths: Sequence[Path], format: str) -> None:
    """Print the series in a format; ``paths`` are the files written."""
    from gnnbench.analysis import track as tracking

    if format == "json":
        print_json({**asdict(tracked), "figures": [str(path) for path in paths]})
    elif format == "csv":
        print_tables({f"{tracked.over}s": tracking.rows(tracked)}, format)
    elif format == "table":
        say(tracked.common)
        for part in [part for table in tracking.tables(tracked) for part in table.fitted(room())]:
            print()
            print_part(part)
        print()
        for sentence in tracking.summary(tracked):
            say(sentence)
        for path in paths:
            print(path)
    else:
        for table in tracking.tables(tracked):
            print_document(table.title, table, format)


def _draw(tracked: Track, path: Path) -> list[Path]:
    """Draw to files of this name. Raises ``UsageError`` if they cannot be written."""
    from gnnbench.analysis import plots
    from gnnbench.analysis.plots import track as drawing

    if not path.name:
        raise UsageError(f"--figure '{path}' names no file; give one such as trend.svg")
    _make_folder("--figure", path)
    try:
        return plots.save(drawing.figure(tracked), path)
    except OSError as error:
        raise UsageError(
            f"cannot write the figure '{path}' ({(error.strerror or '').lower()}); give another"
            " file with --figure"
        ) from None


def _make_folder(option: str, path: Path) -> None:
    """Create the folder of a file that an option names. Raises ``UsageError``."""
    from gnnbench.core.files import ensure_folder

    try:
        ensure_folder(path.parent)
    except UsageError:
        raise UsageError(
            f"cannot write to '{path.parent}'; give another file with {option}"
        ) from None
