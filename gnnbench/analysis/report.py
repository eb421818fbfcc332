"""``docs/results.md`` and the pages below ``docs/results/``, made from the committed results.

``python -m gnnbench.analysis.report`` writes them. A test compares them with the results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gnnbench.analysis import headlines, multi_machine, render, roofline_table, row_remarks, table
from gnnbench.analysis.native_benchmarks import bench_table
from gnnbench.analysis.table_layout import Part
from gnnbench.core import text as safe
from gnnbench.core.errors import UsageError
from gnnbench.core.files import ensure_folder, write_text
from gnnbench.core.units import plural
from gnnbench.schema import reader
from gnnbench.schema.reader import Run
from gnnbench.schema.run_record import RunRecord

Row = Mapping[str, Any]

ROOT = Path(__file__).parents[2]
DOCUMENT = Path("docs") / "results.md"
PAGES = Path("docs") / "results"
COMMITTED = Path("results") / "reference"
VERSIONS = ("python", "torch", "dgl", "torch-geometric")
MOST_LINES = 40  # of a run's tables in a page; longer ones are in the run's folder alone
HEAD = """\
# Results

`python -m gnnbench.analysis.report` writes this page and those that it links to from the committed
runs; do not edit them by hand.

A speed-up is the time of the system in the second column divided by the time of the first one,
measured in alternating runs; above 1 is faster. The brackets hold its 95 % interval. "Twin" is a
generated graph with the published counts of a real one. Absolute times belong to one machine:
compare ratios, and only with their intervals.
"""
RUNS = """\
## All runs

Every page lists the runs of one experiment on one machine with their tables.
[How to read the tables](reading-results.md), [columns and units](../results/SCHEMA.md).
What the runs say about the papers' claims: [verdicts](verdicts.md).
"""
FOLDERS = """\
## What a run's folder holds

`cells.csv` has one row for each measured system, `metrics.csv` everything else that is known about
a cell, `ratios.csv` the direct comparisons, `run.json` machine, versions and revision, and
`definition.toml` the definition. `raw.tar.xz` holds every measured epoch (`samples.jsonl`), all
events (`events.jsonl`) and large tables. `gnnbench show FOLDER` prints a run, `gnnbench plot
FOLDER` draws it.

Seven runs with large journals are committed without their epochs and events: those of `advise`,
`breakdown` on the Xeon and `sampling-fastsample-grid` on the Epyc. Revision 010c3e92 has them.
"""
PAGE_HEAD = """\
# {title}

`python -m gnnbench.analysis.report` writes this page; do not edit it by hand. How to read the
tables: [reading-results.md](../reading-results.md).
"""
_RATIO = "speed-up [95 %]"


def documents(root: Path) -> dict[Path, str]:
    """All generated documents by their paths below ``root``. Raises ``UsageError`` for none."""
    pages = {PAGES / f"{name}.md": text for name, text in _pages(root / "results").items()}
    return {DOCUMENT: _overview(root, sorted(pages)), **pages}


def _overview(root: Path, pages: list[Path]) -> str:
    committed = root / COMMITTED
    lines = [HEAD]
    for group in headlines.selection().group:
        found = headlines.table(group, committed, _short_machine, _page_link)
        lines += [f"## {group.title}", "", *_plain_table(headlines.HEADS, found), ""]
    for figure in headlines.selection().figure:
        target = f"../{(COMMITTED / figure.path).as_posix()}"
        lines += [f"![{figure.caption}]({target})", "", f"*{figure.caption}*", ""]
    lines += [RUNS]
    by_machine: dict[str, list[str]] = {}
    for path in pages:
        machine, _, name = path.stem.partition(".")
        by_machine.setdefault(machine, []).append(f"[{name}](results/{path.name})")
    lines += ["| machine | experiments |", "| --- | --- |"]
    lines += [f"| {machine} | {', '.join(links)} |" for machine, links in by_machine.items()]
    return "\n".join([*lines, "", FOLDERS])


def _plain_table(heads: tuple[str, ...], lines: Sequence[Row]) -> list[str]:
    """A table whose cells are Markdown already."""
    marks = ["---:" if head == _RATIO else "---" for head in heads]
    rows = [list(heads), marks, *([line[head] for head in heads] for line in lines)]
    return ["| " + " | ".join(row) + " |" for row in rows]


def _short_machine(run: Run) -> str:
    """``H100``, or a CPU with its number of threads."""
    found = run.record.get("machine", {})
    if gpus := found.get("gpus"):
        return str(gpus[0]["name"]).removeprefix("NVIDIA ").partition(" ")[0]
    return f"{run.path.parent.name.partition('-')[0].capitalize()}, {found['cores_usable']} threads"


def _page_link(run: Run) -> str:
    return f"[{safe.markdown(run.path.name)}](results/{_page(run)}.md)"


def _page(run: Run) -> str:
    """The name of the page that a run stands in: its machine's folder and its experiment."""
    experiment = run.record.get("experiment", {}).get("name", "other")
    return f"{run.path.parent.name}.{experiment}"


def _pages(results: Path) -> dict[str, str]:
    """Pages by name."""
    tables = [*results.rglob("cells.csv"), *results.rglob("machines.csv")]
    tables = [p for p in tables if not _of_a_user(p.parent, results)]
    if not tables:
        raise UsageError(f"there are no results in '{results}' to report")
    found: dict[str, list[str]] = {}
    titles: dict[str, str] = {}
    for path in sorted(tables):
        across_machines = path.name == "machines.csv"
        run = (reader.read_machines if across_machines else reader.read)(path.parent)
        name = _page(run)
        titles.setdefault(name, run.record.get("experiment", {}).get("title", name))
        part = _machines(run, results) if across_machines else _run(run, results)
        found.setdefault(name, []).extend(part)
    for path in sorted(results.rglob("*.json")):
        if bench := bench_table(path):
            name = f"{path.relative_to(results).parts[-3]}.operators"
            titles[name] = "Operators by themselves"
            found.setdefault(name, []).extend(_bench(path, results, *bench))
    return {name: _whole(name, titles[name], lines) for name, lines in sorted(found.items())}


def _whole(name: str, title: str, lines: list[str]) -> str:
    head = PAGE_HEAD.format(title=f"{_line(title)} ({name.partition('.')[0]})")
    return "\n".join([head, *lines]).rstrip() + "\n"


_line = safe.markdown_line


def _of_a_user(folder: Path, results: Path) -> bool:
    return any(part.startswith("run-") for part in folder.relative_to(results).parts)


def _link(path: Path, results: Path) -> str:
    return f"../../results/{path.relative_to(results).as_posix()}"


def _title(run: Run, results: Path) -> list[str]:
    """Heading of a run: machine, command, revision and where its tables are."""
    folder = f"[tables]({_link(run.path, results)})"
    made = f"{safe.code(command(run.record))}, {safe.markdown(revision(run.record))}, {folder}."
    return [f"## {run.path.name}", "", f"{_line(machine(run.record))}", made]


def _run(run: Run, results: Path) -> list[str]:
    lines = _title(run, results)
    lines += [f"{_line(table.heading(run.cells))}.", ""]
    if run.record.get("finished") is False:
        lines += ["The run was stopped before its end: cells or comparisons may be missing.", ""]
    if len(run.cells) > MOST_LINES:
        rows = f"[{plural(len(run.cells), 'row')}]({_link(run.path / 'cells.csv', results)})"
        return [*lines, f"This run has {rows}; `gnnbench show` prints them.", ""]
    for part in table.parts(run.cells, run.metrics, different=True):
        lines += [*part.markdown(), ""]
    for part in render.beside(run):
        lines += [f"{_line(part.title)}:", "", *part.markdown(), ""]
        lines += [f"{_line(part.note)}.", ""] if part.note else []
    remarks = [*render.set_for_all(run), *row_remarks.ratio_lines(run.ratios, run.cells)]
    remarks += row_remarks.remarks(run.cells, different=True)
    remarks += roofline_table.remarks(run.roofline)
    return [*lines, *(f"- {_line(text)}" for text in remarks), *([""] if remarks else [])]


def _machines(run: Run, results: Path) -> list[str]:
    """A run of several machines: it has no cells."""
    lines = [*_title(run, results), "[What it measures](../several-machines.md).", ""]
    for part in multi_machine.tables(run.machines):
        lines += [f"{_line(part.title)}:", "", *part.markdown(), ""]
    return [*lines, *(f"- {_line(text)}" for text in multi_machine.remarks(run)), ""]


def machine(record: RunRecord) -> str:
    """The machine of a run, in words."""
    found = record.get("machine", {})
    memory = (found.get("memory_bytes") or 0) / 2**30
    parts = [f"{found.get('cores_usable')} cores of {found.get('cpu')}, {memory:.0f} GiB"]
    for gpu in found.get("gpus") or []:
        parts.append(f"{gpu['name']} ({gpu['memory_bytes'] / 2**30:.0f} GiB)")
    known = record.get("versions", {})
    parts += [f"{package} {known[package]}" for package in VERSIONS if known.get(package)]
    return ", ".join(parts) + "."


def command(record: RunRecord) -> str:
    """The command that makes such a run."""
    if command := record.get("command"):
        return str(command)
    profile = f" --profile {record['profile']}" if record.get("profile") else ""
    return f"gnnbench run {record.get('experiment', {}).get('name', '')}{profile}"


def revision(record: RunRecord) -> str:
    """The code of a run, in words."""
    found = record.get("revision", {})
    if not found.get("git_revision"):
        return f"a copy without git, source {found.get('source_digest')}"
    changed = " with changes" if found.get("git_dirty") else ""
    return f"revision {found['git_revision'][:12]}{changed}"


def _bench(path: Path, results: Path, about: str, part: Part) -> list[str]:
    heads = [h for h in part.heads if any(line.get(h) for line in part.lines)]
    checks = path.with_name("CHECKS.md")
    links = [f"[{p.name}]({_link(p, results)})" for p in (path, checks) if p.exists()]
    lines = [f"## {path.stem}", "", about, "", *Part(heads, part.lines).markdown(), ""]
    return [*lines, f"Files: {', '.join(links)}.", ""]


def write(root: Path) -> None:
    """Write all documents and remove pages that are none of them any more."""
    found = documents(root)
    for path, text in found.items():
        ensure_folder((root / path).parent)
        write_text(root / path, text)
    for left in (root / PAGES).glob("*.md"):
        if left.relative_to(root) not in found:
            left.unlink()


if __name__ == "__main__":
    write(ROOT)
