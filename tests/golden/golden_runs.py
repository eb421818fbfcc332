"""Tables of committed runs, computed again from their journals.

``runs/NAME`` has the definition of a run, the facts of its machine (``machine.json``) and the
tables that the code computed when they were pinned. Its journals are in ``runs/NAME`` or, for
``MACHINE-RUN``, those of the committed run ``results/reference/MACHINE*/RUN``.
"""

from __future__ import annotations

import csv
import io
import json
import lzma
import tarfile
import tomllib
from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any
from unittest import mock

from golden_files import HERE, ROOT

from gnnbench.config import experiment, grid
from gnnbench.distributed.producer_consumer import ProducerConsumer
from gnnbench.harness import available, environment
from gnnbench.harness.available import Availability
from gnnbench.harness.failures import Failure
from gnnbench.harness.journal import RunJournal
from gnnbench.harness.plan import Plan, ReferenceOverrides, make_plan
from gnnbench.harness.reduce.tables import write_tables
from gnnbench.measure import machine
from gnnbench.pipelines.find import stage
from gnnbench.statistics.noise import Calibration

RUNS = HERE / "runs"
JOURNALS = ("events.jsonl", "samples.jsonl")
TABLES = ("cells.csv", "ratios.csv", "metrics.csv")
# Implementation of stages in the pinned journals where it has been raised since, which changes ids.
IMPLEMENTATIONS = {("aggregate", "memory-aware"): 1}
FREE_TEXT = {"doubtful", "reason", "remark", "description", "floor_from"}

Table = list[dict[str, str]]


def names() -> list[str]:
    """The pinned runs."""
    return sorted(path.name for path in RUNS.iterdir() if path.is_dir())


def unpack(run: str, folder: Path) -> None:
    """Lay out a pinned run's definition and journals as a run's folder has them."""
    source = RUNS / run
    for name in JOURNALS:
        (folder / name).write_bytes(_journal(run, name))
    (folder / "definition.toml").write_bytes((source / "definition.toml").read_bytes())
    (folder / "machine.json").write_bytes((source / "machine.json").read_bytes())


def _journal(run: str, name: str) -> bytes:
    """A journal of a pinned run."""
    own = RUNS / run / f"{name}.xz"
    if own.exists():
        return lzma.decompress(own.read_bytes())
    computer, _, rest = run.partition("-")
    (archive,) = (ROOT / "results" / "reference").glob(f"{computer}*/{rest}/raw.tar.xz")
    with tarfile.open(archive) as tar:
        file = tar.extractfile(name)
        assert file is not None, f"'{archive}' has no {name}"
        return file.read()


def compute(folder: Path) -> dict[str, Table]:
    """The tables of a run, from its journals. ``folder`` is what ``unpack`` made."""
    known = json.loads((folder / "machine.json").read_text())
    with ExitStack() as earlier:
        for (kind, name), number in IMPLEMENTATIONS.items():
            earlier.enter_context(mock.patch.object(stage(kind, name), "implementation", number))
        return _compute(folder, known)


@mock.patch.object(ProducerConsumer, "implementation", 1)  # which these journals measured
def _compute(folder: Path, known: dict[str, Any]) -> dict[str, Table]:
    resolved = experiment.resolve(experiment.load(str(folder / "definition.toml")))
    cells = grid.expand(resolved, available.resolve, known=environment.known_paths)
    plan = make_plan(
        cells, resolved.reference, (), lambda cell: Availability(), lambda dataset: None,
        environment.stand_in, resolved.compare,
        ReferenceOverrides(resolved.references, environment.variant),
    )  # fmt: skip
    plan.failures.update({i: Failure(*why) for i, why in known["not_run"].items()})
    calibrations = [Calibration.from_json(one) for one in known["calibration"]]
    with (
        closing(RunJournal(folder)) as journal,
        mock.patch.object(machine, "usable_cores", lambda: known["cores"]),
    ):
        _check(plan, journal)
        write_tables(folder, plan, journal, resolved, calibrations)
    return {name: rows((folder / name).read_text()) for name in TABLES if (folder / name).exists()}


def _check(plan: Plan, journal: RunJournal) -> None:
    """Raise where the journal has cells that the definition does not come to."""
    there = {sample["id"] for sample in journal.samples}
    lost = there - {cell.id for cell in plan.cells}
    assert not lost, f"the definition no longer comes to the cells {sorted(lost)}"


def rows(text: str) -> Table:
    """Rows of a CSV file as texts."""
    return list(csv.DictReader(io.StringIO(text)))


def expected(run: str) -> dict[str, Table]:
    """The golden tables of a run, after the committed renames."""
    renames = tomllib.loads((HERE / "renames.toml").read_text())
    by_table = {}
    for name in TABLES:
        if (path := RUNS / run / f"{name}.xz").exists():
            text = lzma.decompress(path.read_bytes()).decode()
            table, own = _renamed(name, rows(text), renames)
            by_table[table] = own
    return by_table


def _renamed(name: str, table: Table, renames: Mapping[str, Any]) -> tuple[str, Table]:
    """A golden table in the names of today: ``[tables]``, ``[columns]``, ``[values]``, ``[words]``.

    ``[words]`` holds for whole words of recipes and labels: stages and their fields.
    """
    columns = renames.get("columns", {}).get(name, {})
    values = renames.get("values", {}).get(name, {})
    words = renames.get("words", {})
    rows = []
    for row in table:
        own = {}
        for column, value in row.items():
            value = values.get(column, {}).get(value, value)
            if column in ("recipe", "reference", "first", "second"):
                value = _reworded(value, words)
            own[columns.get(column, column)] = value
        rows.append(own)
    return renames.get("tables", {}).get(name, name), rows


def _reworded(text: str, words: Mapping[str, str]) -> str:
    """A recipe (JSON) or a label with its names replaced."""
    if text.startswith("{"):
        return json.dumps(_renamed_json(json.loads(text), words), sort_keys=True)
    parts = [[".".join(map(lambda w: words.get(w, w), side.split(".")))
              if not side.replace(".", "").isdigit() else side for side in word.split("=")]
             for word in text.split(" ")]  # fmt: skip
    return " ".join("=".join(part) for part in parts)


def _renamed_json(value: Any, words: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {words.get(k, k): _renamed_json(v, words) for k, v in value.items()}
    return words.get(value, value) if isinstance(value, str) else value


def without_text(table: Table) -> Table:
    """Rows without the columns of free text."""
    return [{k: v for k, v in row.items() if k not in FREE_TEXT} for row in table]
