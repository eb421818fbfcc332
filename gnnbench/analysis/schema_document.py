"""Print the schema as a document."""

from __future__ import annotations

from gnnbench.analysis import metrics
from gnnbench.core import counters
from gnnbench.schema import ACROSS, STAGE_NAMES, STATUSES, TABLES, VERSION, WORK_CLASSES
from gnnbench.statistics.stopping_rule import VERDICTS


def markdown() -> str:
    """The schema as a document."""
    lines = [
        "# Columns of the results",
        "",
        "Printed by `python -m gnnbench.analysis.schema_document`; do not edit by hand.",
        f"Version {VERSION}. Times in seconds, sizes in bytes; an empty field means unknown or not",
        "applicable.",
    ]
    for file, (title, columns) in (TABLES | ACROSS).items():
        lines += ["", f"## `{file}`: {title}", "", "| column | type | unit | meaning |"]
        lines += ["|---|---|---|---|"]
        lines += [f"| `{c.name}` | {c.dtype} | {c.unit} | {c.description} |" for c in columns]
    lines += ["", "## `name` in `metrics.csv`", "", "| name | unit | meaning |", "|---|---|---|"]
    lines += [f"| `{m.name}` | {m.unit} | {m.description} |" for m in metrics.declared()]
    for title, terms in (
        ("`where`", counters.WHERE),
        ("`status`", STATUSES),
        ("`work_class`", WORK_CLASSES),
        ("`verdict`", VERDICTS),
        ("`stage` in `stages.csv`", STAGE_NAMES),
    ):
        lines += ["", f"## {title}", "", "| value | meaning |", "|---|---|"]
        lines += [f"| `{name}` | {meaning} |" for name, meaning in terms.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(markdown(), end="")
