"""The HTML report: verdicts, numbers, figures and machines in one self-contained file.

Template and style are ``page.html`` and ``page.css`` in this folder; ``page_view`` has their data.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from gnnbench.core import text as safe
from gnnbench.core.errors import UsageError
from gnnbench.core.files import ensure_folder, write_text
from gnnbench.reproduction.claim_verdict import ClaimVerdict
from gnnbench.reproduction.interval_drawing import slug
from gnnbench.reproduction.page_view import (
    Sources,
    paper_views,
    run_views,
    verdict_counts,
)
from gnnbench.reproduction.text import count
from gnnbench.reproduction.verdict import VERDICTS

if TYPE_CHECKING:
    from gnnbench.reproduction.reproduce import RunStep

NAME = "index.html"
FOLDER = Path(__file__).parent


def write(
    path: Path, profile: str, verdicts: Sequence[ClaimVerdict], steps: Sequence[RunStep] = ()
) -> None:
    """Write the report of verdicts to a file.

    ``profile`` and ``steps`` are those of ``gnnbench reproduce``. Raises ``UsageError`` where the
    file cannot be written.
    """
    if path.is_dir():
        raise UsageError(f"'{path}' is a folder; name a file, such as '{path / NAME}'")
    ensure_folder(path.parent)
    write_text(path, html(path.parent, profile, verdicts, steps))


def html(
    folder: Path, profile: str, verdicts: Sequence[ClaimVerdict], steps: Sequence[RunStep] = ()
) -> str:
    """The report; links to folders of runs are relative to ``folder``."""
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["marked"] = lambda text: Markup(safe.html_spans(text))
    sources = Sources(verdicts)
    runs = run_views(folder, verdicts, sources)
    days = [run.date for run in runs if run.date]
    return environment.get_template("page.html").render(
        style=Markup((FOLDER / "page.css").read_text(encoding="utf-8")),
        profile=profile,
        count=count(verdicts),
        counts=verdict_counts(verdicts),
        verdicts=[(verdict, slug(verdict), meaning) for verdict, meaning in VERDICTS.items()],
        papers=paper_views(verdicts, sources),
        steps=[(s.run, len(s.claims), s.state, s.reason) for s in steps],
        runs=runs,
        machines=sources.machines,
        days=dict.fromkeys((min(days), max(days))) if days else (),
    )


def _printable(value: object) -> object:
    """Escape the control characters of a value of the template."""
    return value if isinstance(value, Markup) else safe.printable(str(value))
