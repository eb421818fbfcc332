"""``gnnbench track``."""

from __future__ import annotations

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


def track(
    runs: Annotated[
        list[str],
        typer.Argument(
            autocompletion=completing.runs,
            help="Runs: folders, folders of runs, experiments (all their runs), latest, latest~1.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("results"),
    figure: Annotated[
        Path | None,
        typer.Option(help="File to draw, as PNG and SVG. Default: track in the results' folder."),
    ] = None,
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
    paths = _draw(tracked, out / "track" if figure is None else figure)
    if format == "json":
        print_json({**asdict(tracked), "figures": [str(path) for path in paths]})
    elif format == "csv":
        print_tables({"runs": tracking.rows(tracked)}, format)
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
    from gnnbench.core.files import ensure_folder

    if not path.name:
        raise UsageError(f"--figure '{path}' names no file; give one such as trend.svg")
    ensure_folder(path.parent)
    try:
        return plots.save(drawing.figure(tracked), path)
    except OSError as error:
        raise UsageError(
            f"cannot write the figure '{path}' ({(error.strerror or '').lower()}); give another"
            " file with --figure"
        ) from None
