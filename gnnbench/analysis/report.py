"""Generate ``docs/results.md``, ``docs/versions.md``, pages of runs and a block of ``README.md``.

``python -m gnnbench.analysis.report`` writes them from the committed results and draws the figures
of ``README.md``. A test compares them with the results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from gnnbench.analysis import (
    headlines,
    history,
    multi_machine,
    plots,
    readme,
    render,
    roofline_table,
    row_remarks,
    table,
)
from gnnbench.analysis.native_benchmarks import bench_table
from gnnbench.analysis.plots import track as curves
from gnnbench.analysis.table_layout import TextTable, nonempty
from gnnbench.analysis.track import Track
from gnnbench.core import text as safe
from gnnbench.core.errors import UsageError
from gnnbench.core.files import ensure_folder, write_text
from gnnbench.core.units import plural
from gnnbench.schema import reader
from gnnbench.schema.reader import Run
from gnnbench.schema.run_record import RunRecord

ROOT = Path(__file__).parents[2]
README = Path("README.md")
DOCUMENT = Path("docs") / "results.md"
PAGES = Path("docs") / "results"
COMMITTED = Path("results") / "reference"
VERSION_RUNS = "*/*-versions"  # of a peer, each in an environment of its own
VERSION_PAGE, VERSION_CURVES = Path("docs") / "versions.md", COMMITTED / "versions.svg"
VERSIONS = ("python", "torch", "dgl", "torch-geometric")
MOST_LINES = 40  # of a table in a page; pages link to longer ones
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
What the runs say about the papers' claims: [verdicts](verdicts.md). Versions of DGL and PyG:
[versions](versions.md).
"""
FOLDERS = """\
## Files of a run

`cells.csv` has one row for each measured system, `metrics.csv` all other numbers of a cell,
`ratios.csv` the direct comparisons, `run.json` machine, versions and revision, and
`definition.toml` the definition. `raw.tar.xz` has every measured epoch (`samples.jsonl`), all
events (`events.jsonl`) and large tables. `gnnbench show FOLDER` prints a run, `gnnbench plot
FOLDER` draws it.

A run on 16 of 64 cores was measured while two or three others ran on other cores and other GPUs of
the same host. They share the host's memory, so ratios of systems that gather rows by the cores have
wider intervals than on a host of their own.

Seven runs with large journals are committed without their epochs and events: those of `advise`,
`breakdown` on the Xeon and `sampling-fastsample-grid` on the Epyc. Revision 010c3e92 has them.
"""
PAGE_HEAD = """\
# {title}

`python -m gnnbench.analysis.report` writes this page; do not edit it by hand. How to read the
tables: [reading-results.md](../reading-results.md).
"""
_NUMBERS = ("pairs", "speed-up [95 %]")


def documents(root: Path) -> dict[Path, str]:
    """All generated documents by path below ``root``. Raises ``UsageError`` without results."""
    pages = {PAGES / f"{name}.md": text for name, text in _pages(root / "results").items()}
    made = {README: _readme(root), DOCUMENT: _overview(root, sorted(pages)), **pages}
    if track := _version_track(root):
        made[VERSION_PAGE] = history.page(track, f"../{VERSION_CURVES.as_posix()}")
    return made


def _version_track(root: Path) -> Track | None:
    """The committed runs that compare versions of a peer; None without one."""
    folders = sorted((root / COMMITTED).glob(VERSION_RUNS))
    return history.history(map(reader.read, folders)) if folders else None


def _readme(root: Path) -> str:
    """``README.md`` with its headlines. Raises ``UsageError`` if a ratio may not be shown."""
    results = headlines.results(readme.rows(), root / COMMITTED)
    for result in results:
        readme.check(result)
    table_lines = headlines.table(results, _short_machine, _section_link)
    lines = [*_markdown_table(headlines.HEADS, table_lines), "", *readme.notes(results)]
    for figure in readme.figures():
        target = (COMMITTED / figure.path).as_posix()
        lines += ["", f"![{figure.caption}]({target})", "", f"*{figure.caption}*"]
    return readme.with_block((root / README).read_text(encoding="utf-8"), lines)


def _overview(root: Path, pages: list[Path]) -> str:
    committed = root / COMMITTED
    lines = [HEAD]
    for group in headlines.selection().group:
        results = headlines.results(group.row, committed)
        table_lines = headlines.table(results, _short_machine, _page_link)
        lines += [f"## {group.title}", "", *_markdown_table(headlines.HEADS, table_lines), ""]
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


def _markdown_table(heads: tuple[str, ...], lines: Sequence[Mapping[str, str]]) -> list[str]:
    """A table whose fields are Markdown."""
    marks = ["---:" if head in _NUMBERS else "---" for head in heads]
    rows = [list(heads), marks, *([line[head] for head in heads] for line in lines)]
    return ["| " + " | ".join(row) + " |" for row in rows]


def _short_machine(run: Run) -> str:
    """``H100``, or a CPU with its number of threads."""
    machine = run.record.machine
    if machine.gpus:
        return machine.gpus[0].name.removeprefix("NVIDIA ").partition(" ")[0]
    cpu = run.path.parent.name.partition("-")[0].capitalize()
    return f"{cpu}, {machine.cores_usable} threads"


def _page_link(run: Run) -> str:
    return f"[{safe.markdown(run.path.name)}](results/{_page(run)}.md)"


def _section_link(run: Run) -> str:
    """A link from the root of the repository to the section of a run in its page."""
    return f"[{safe.markdown(run.path.name)}](docs/results/{_page(run)}.md#{run.path.name})"


def _page(run: Run) -> str:
    """The name of a run's page: its machine's folder and its experiment."""
    experiment = run.record.experiment.name or "other"
    return f"{run.path.parent.name}.{experiment}"


def _pages(results: Path) -> dict[str, str]:
    """Pages by name."""
    tables = [*results.rglob("cells.csv"), *results.rglob("machines.csv")]
    tables = [p for p in tables if not _is_private(p.parent, results)]
    if not tables:
        raise UsageError(f"there are no results in '{results}' to report")
    pages: dict[str, list[str]] = {}
    titles: dict[str, str] = {}
    for path in sorted(tables):
        is_multi_machine = path.name == "machines.csv"
        run = (reader.read_machines if is_multi_machine else reader.read)(path.parent)
        name = _page(run)
        titles.setdefault(name, run.record.experiment.title or name)
        section = _multi_machine_run if is_multi_machine else _run
        pages.setdefault(name, []).extend(section(run, results))
    for path in sorted(results.rglob("*.json")):
        if bench := bench_table(path):
            name = f"{path.relative_to(results).parts[-3]}.operators"
            titles[name] = "Operators by themselves"
            pages.setdefault(name, []).extend(_bench(path, results, *bench))
    return {name: _whole(name, titles[name], lines) for name, lines in sorted(pages.items())}


def _whole(name: str, title: str, lines: list[str]) -> str:
    head = PAGE_HEAD.format(title=f"{_line(title)} ({name.partition('.')[0]})")
    return "\n".join([head, *lines]).rstrip() + "\n"


_line = safe.markdown_line


def _is_private(folder: Path, results: Path) -> bool:
    """Whether a run is not committed: folders of such runs have a time stamp."""
    return any(part.startswith("run-") for part in folder.relative_to(results).parts)


def _link(path: Path, results: Path) -> str:
    return f"../../results/{path.relative_to(results).as_posix()}"


def _title(run: Run, results: Path) -> list[str]:
    """Heading of a run: machine, command, revision, and a link to its tables."""
    folder = f"[tables]({_link(run.path, results)})"
    origin = (
        f"{safe.code(run.record.repeat_command)}, {safe.markdown(revision(run.record))}, {folder}."
    )
    return [f"## {run.path.name}", "", f"{_line(machine(run.record))}", origin]


def _run(run: Run, results: Path) -> list[str]:
    lines = _title(run, results)
    lines += [f"{_line(table.heading(run.cells))}.", ""]
    if run.record.finished is False:
        lines += ["The run was interrupted: cells or comparisons may be missing.", ""]
    if len(run.cells) > MOST_LINES:
        rows = f"[{plural(len(run.cells), 'row')}]({_link(run.path / 'cells.csv', results)})"
        return [*lines, f"This run has {rows}; `gnnbench show` prints them.", ""]
    for part in table.main_tables(run.cells, run.metrics, different=True):
        lines += [*part.markdown(), ""]
    for part in render.additional_tables(run):
        lines += [f"{_line(part.title)}:", "", *part.markdown(), ""]
        lines += [f"{_line(part.note)}.", ""] if part.note else []
    remarks = [*render.common_settings(run), *row_remarks.ratio_lines(run.ratios, run.cells)]
    remarks += row_remarks.remarks(run.cells, different=True)
    remarks += roofline_table.remarks(run.roofline)
    return [*lines, *(f"- {_line(text)}" for text in remarks), *([""] if remarks else [])]


def _multi_machine_run(run: Run, results: Path) -> list[str]:
    """Section of a run of several machines, which has no cells."""
    lines = [*_title(run, results), "[What it measures](../several-machines.md).", ""]
    for part in multi_machine.tables(run.machines):
        lines += [f"{_line(part.title)}:", "", *part.markdown(), ""]
    return [*lines, *(f"- {_line(text)}" for text in multi_machine.remarks(run)), ""]


def machine(record: RunRecord) -> str:
    """The machine of a run and the versions of its packages, in one sentence."""
    hardware = record.machine
    memory = (hardware.memory_bytes or 0) / 2**30
    is_part = hardware.cores_logical not in (None, hardware.cores_usable)
    of_all = f" of {hardware.cores_logical}" if is_part else ""
    parts = [f"{hardware.cores_usable}{of_all} cores of {hardware.cpu}, {memory:.0f} GiB"]
    parts += [f"{gpu.name} ({gpu.memory_bytes / 2**30:.0f} GiB)" for gpu in hardware.gpus or []]
    versions = record.versions
    parts += [f"{package} {versions[package]}" for package in VERSIONS if versions.get(package)]
    return ", ".join(parts) + "."


def revision(record: RunRecord) -> str:
    """The code revision of a run, in words."""
    code = record.revision
    if not code.git_revision:
        return f"a copy without git, source {code.source_digest}"
    return f"revision {code.git_revision[:12]}{' with changes' if code.git_dirty else ''}"


def _bench(path: Path, results: Path, about: str, part: TextTable) -> list[str]:
    heads = nonempty(part.heads, part.lines)
    checks = path.with_name("CHECKS.md")
    links = [f"[{p.name}]({_link(p, results)})" for p in (path, checks) if p.exists()]
    lines = [f"## {path.stem}", "", about, "", *TextTable(heads, part.lines).markdown(), ""]
    return [*lines, f"Files: {', '.join(links)}.", ""]


def write(root: Path) -> None:
    """Write all documents, remove outdated pages, and draw the figures of ``README.md``."""
    current = documents(root)
    for path, text in current.items():
        ensure_folder((root / path).parent)
        write_text(root / path, text)
    for page in (root / PAGES).glob("*.md"):
        if page.relative_to(root) not in current:
            page.unlink()
    for figure in readme.figures():
        path = root / COMMITTED / figure.path
        for drawn in plots.draw(path.parents[1], [path.stem]):
            if drawn.suffix != path.suffix:  # only one format is committed
                drawn.unlink()
    if track := _version_track(root):
        plots.save(curves.figure(track), root / VERSION_CURVES.with_suffix(""), [".svg"])


if __name__ == "__main__":
    write(ROOT)
