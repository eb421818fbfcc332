"""``docs/results.md``: the committed results as a document, so that it cannot go stale.

``python -m gnnbench.results.report`` writes it from what lies below ``results/``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gnnbench import text as safe
from gnnbench.errors import UsageError
from gnnbench.files import ensure_folder, write_text
from gnnbench.results import across, inside_table, reader, roofline_table, shown, table
from gnnbench.results.bench_table import bench_table
from gnnbench.results.part import Part
from gnnbench.results.reader import Run
from gnnbench.results.schema import TABLES
from gnnbench.results.starts import start_line

Row = dict[str, Any]

ROOT = Path(__file__).parents[2]
DOCUMENT = Path("docs") / "results.md"
VERSIONS = ("python", "torch", "dgl", "torch-geometric")
HEAD = """\
# Results

Made from the committed runs by `python -m gnnbench.results.report`; do not edit by hand. Columns
and units: [SCHEMA.md](../results/SCHEMA.md).

A run leaves a folder `results/EXPERIMENT/run-TIME-HASH`:

{files}

A comparison is made of pairs of fresh processes, measured in turn. Times are geometric means over
lives of each life's median, `+-` is half of the 95 % interval over that, `reference` the
reference's time in the same rounds. A speed-up is the geometric mean over pairs of the reference's
time over this one's, with its interval by Student's t over the pairs: above 1 is faster. `faster`
and `slower` leave 1 behind by more than 1 %, `same` lies within 3 % of it, `unclear` is neither.
`identical` work draws the same edges, `equivalent` work as many by the same law; `different` work
has ratios per sampled edge and per batch alone. `(?)` marks a row whose remark says why not to
trust it. Runs of version 1 of the tables have times (medians of epochs) and no ratios: those were
withdrawn. Absolute times belong to one
machine: compare ratios, and only with their intervals.
"""
FILES = {
    "run.json": "machine, versions, revision, the resolved definition",
    "definition.toml": "the same definition, to be run again",
    "samples.jsonl": "every epoch as it was measured, with all that was counted",
    "events.jsonl": "gates, failures and whatever else happened",
    "figures/": "what `gnnbench plot` draws",
}


def report(root: Path) -> str:
    """The document for the results below ``root/results``. Raises ``UsageError`` without any."""
    results = root / "results"
    tables = [*results.rglob("cells.csv"), *results.rglob("machines.csv")]
    tables = [p for p in tables if not _of_a_user(p.parent, results)]
    if not tables:
        raise UsageError(f"there are no results in '{results}' to tell of")
    files = FILES | {name: text for name, (text, _) in TABLES.items()}
    told = "\n".join(f"- `{name}`: {text}" for name, text in files.items())
    lines = [HEAD.format(files=told)]
    for path in sorted(tables):
        if path.name == "machines.csv":
            lines += _machines(reader.read_machines(path.parent), results)
        else:
            lines += _run(reader.read(path.parent), results)
    for path in sorted(results.rglob("*.json")):
        if bench := bench_table(path):
            lines += _bench(path, results, *bench)
    return "\n".join(lines) + "\n"


_line = safe.markdown_line


def _of_a_user(folder: Path, results: Path) -> bool:
    return any(part.startswith("run-") for part in folder.relative_to(results).parts)


def _link(path: Path, results: Path) -> str:
    return f"../results/{path.relative_to(results).as_posix()}"


def _run(run: Run, results: Path) -> list[str]:
    experiment = run.record.get("experiment", {})
    name = run.path.relative_to(results).as_posix()
    tables = [run.path / file for file in TABLES if (run.path / file).exists()]
    links = ", ".join(f"[{p.stem}]({_link(p, results)})" for p in tables)
    lines = [
        f"## {name}",
        "",
        f"{_line(experiment.get('title', name))}. {_line(machine(run.record))}",
    ]
    lines += [f"{safe.code(command(run.record))}, {safe.markdown(revision(run.record))} ({links});"]
    lines += [f"{_line(table.heading(run.cells))}.", ""]
    if run.record.get("finished") is False:
        lines += ["The run was ended before its end: cells or comparisons may be missing.", ""]
    for part in table.parts(run.cells, run.metrics, different=True):
        lines += [*part.markdown(), ""]
    for part in shown.beside(run):
        lines += [f"{_line(part.title)}:", "", *part.markdown(), ""]
        lines += [f"{_line(part.note)}.", ""] if part.note else []
    remarks = [*shown.set_for_all(run), *table.ratio_lines(run.ratios, run.cells)]
    remarks += table.remarks(run.cells, different=True)
    remarks += [*roofline_table.remarks(run.roofline), *start_line(run.cells, run.metrics)]
    lines += [*(f"- {_line(text)}" for text in remarks), *([""] if remarks else [])]
    if run.stages:
        stages = inside_table.stages_table(run.stages)
        lines += ["Stages of a batch, median; memory beyond graph and blocks, over the blocks:", ""]
        lines += [*stages.markdown(), ""]
    return lines + _figures(run, results)


def _machines(run: Run, results: Path) -> list[str]:
    """A run of several machines: it has no cells."""
    name, table = run.path.relative_to(results).as_posix(), run.path / "machines.csv"
    lines = [
        f"## {name}",
        "",
        f"{_line(run.record['experiment']['title'])}. {_line(machine(run.record))}",
    ]
    made = f"{safe.code(command(run.record))}, {safe.markdown(revision(run.record))}"
    lines += [f"{made} ([rows]({_link(table, results)}))."]
    lines += ["[What it can tell](several-machines.md).", ""]
    for part in across.tables(run.machines):
        lines += [f"{_line(part.title)}:", "", *part.markdown(), ""]
    lines += [*(f"- {_line(text)}" for text in across.remarks(run)), ""]
    return lines + _figures(run, results)


def _figures(run: Run, results: Path) -> list[str]:
    figures = sorted((run.path / "figures").glob("*.png"))
    return [" ".join(f"![{f.stem}]({_link(f, results)})" for f in figures), ""] if figures else []


def machine(record: Row) -> str:
    """The machine of a run, in words."""
    found = record.get("machine", {})
    memory = (found.get("memory_bytes") or 0) / 2**30
    parts = [f"{found.get('cores_usable')} cores of {found.get('cpu')}, {memory:.0f} GiB"]
    for gpu in found.get("gpus") or []:
        parts.append(f"{gpu['name']} ({gpu['memory_bytes'] / 2**30:.0f} GiB)")
    known = record.get("versions", {})
    parts += [f"{package} {known[package]}" for package in VERSIONS if known.get(package)]
    return ", ".join(parts) + "."


def command(record: Row) -> str:
    """The command that makes such a run."""
    if command := record.get("command"):
        return str(command)
    profile = f" --profile {record['profile']}" if record.get("profile") else ""
    return f"gnnbench run {record.get('experiment', {}).get('name', '')}{profile}"


def revision(record: Row) -> str:
    """The code of a run, in words."""
    found = record.get("revision", {})
    if not found.get("git_revision"):
        return f"a copy without git, source {found.get('source_digest')}"
    changed = " with changes" if found.get("git_dirty") else ""
    return f"revision {found['git_revision'][:12]}{changed}"


def _bench(path: Path, results: Path, about: str, part: Part) -> list[str]:
    name = path.relative_to(results).with_suffix("").as_posix()
    heads = [h for h in part.heads if any(line.get(h) for line in part.lines)]
    checks = path.with_name("CHECKS.md")
    links = [f"[{p.name}]({_link(p, results)})" for p in (path, checks) if p.exists()]
    lines = [f"## {name}", "", about, "", *Part(heads, part.lines).markdown(), ""]
    return [*lines, f"Files: {', '.join(links)}.", ""]


if __name__ == "__main__":
    ensure_folder(ROOT / DOCUMENT.parent)
    write_text(ROOT / DOCUMENT, report(ROOT))
