"""FastSample's partitions and DistDGL on emulated machines, in turn, life by life."""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path

from gnnbench.contrib.emulated_network import network, start
from gnnbench.contrib.emulated_network.distdgl import OWNERS
from gnnbench.contrib.emulated_network.life import (
    DGL,
    OK,
    OURS,
    THEIRS,
    Turn,
    key_of_line,
    key_of_row,
    live,
)
from gnnbench.contrib.emulated_network.network import Network
from gnnbench.contrib.emulated_network.plan import Plan
from gnnbench.contrib.emulated_network.records import SampleLine
from gnnbench.core.errors import UsageError
from gnnbench.core.files import Journal, ensure_folder, plain, write_json, write_text
from gnnbench.measure import machine
from gnnbench.schema import MACHINES, MachineRow, pack
from gnnbench.schema.events import read_journal
from gnnbench.schema.reader import read_csv, read_json_record
from gnnbench.schema.run_json import DglPartitionJson, RunJson, WorkJson
from gnnbench.schema.writer import write_csv
from gnnbench.statistics.estimates import mean_interval, welch

SYSTEMS = ("vanilla", "hybrid", "hybrid-fused")
PARTITIONS = "partitions"  # in the run's folder
_FEW = 3  # fanout and steps where rounds of some hops are counted
Say = Callable[[str], None]


@dataclass(frozen=True)
class Comparison:
    """What is compared: FastSample's training (section 4.2) where nothing else is said.

    ``lives``: of each program on each setting; a life has ``epochs`` epochs after one of warm-up.
    ``max_steps``: only the first steps of an epoch, of warm-up ``warm_steps``; 0 all. ``method``:
    of gnnbench's partition; ``dgl`` is the one that DistDGL has, made by DGL. ``peer``: whether
    DistDGL runs, too. ``hops``: of these numbers the rounds are counted at the end.
    """

    dataset: str = "ogbn_arxiv"
    machines: tuple[int, ...] = (2, 4)
    rates: tuple[float, ...] = (1.0, 10.0)
    delay: float = 0.0
    lives: int = 5
    epochs: int = 1
    method: str = "dgl"
    fanouts: tuple[int, ...] = (15, 10, 5)
    batch_size: int = 1000
    hidden: int = 256
    learning_rate: float = 0.006
    seed: int = 0
    max_steps: int = 0
    warm_steps: int = 3
    peer: bool = True
    hops: tuple[int, ...] = (1, 2, 3, 4)
    name: str = "gnnbench-compare"

    def __post_init__(self) -> None:
        if self.method == DGL and not self.peer:
            raise UsageError("method 'dgl' is DistDGL's partition; without it take another, metis")
        if min(self.machines, default=0) < 2:
            raise UsageError("a comparison takes two machines or more")
        if self.lives < 1 or self.epochs < 1:
            raise UsageError("lives and epochs must be 1 or more")


def compare(what: Comparison, out: Path, say: Say = print, resume: bool = False) -> Path:
    """Run it and write ``machines.csv``, ``samples.jsonl`` and ``run.json`` into ``out``.

    Programs take turns: in every life each setting has one life of each program, the one that was
    first then last. A life that fails is rows that say so, and the next one begins. With ``resume``
    the run in ``out`` goes on: lives that are missing or failed are run.

    Raises ``MissingError`` without root, ``UsageError`` where ``out`` holds a run that cannot go on
    so, ``CellsFailedError`` where DGL does not make its partition.
    """
    network.need()
    for rate in what.rates:
        Network(max(what.machines), rate, what.delay, what.name)  # wrong values, before anything
    ensure_folder(out)
    record = _record(what)
    done = _begun(out, record) if resume else []
    if not resume and (out / "machines.csv").exists():
        raise UsageError(
            f"'{out}' holds a run already; go on with --resume, or give another folder with --out"
        )
    write_json(out / "run.json", record)
    rows = {key: [r for r in done if key_of_row(r) == key] for key in map(key_of_row, done)}
    pack.unpack(out)
    _keep(out / "samples.jsonl", rows)
    parts = out / PARTITIONS  # DistDGL's, until all lives have ended well
    with (
        closing(Journal(out / "samples.jsonl")) as journal,
        tempfile.TemporaryDirectory() as folder,
    ):
        turns = list(_turns(what, parts))
        if what.peer and any(turn.key not in rows for turn in turns):
            _make_partitions(what, parts, record, out)
        for turn in turns:
            if turn.key in rows:
                continue
            say(turn.words)
            rows[turn.key], lines = live(turn, Path(folder))
            for line in lines:
                journal.append(line)
            _write(out, turns, rows)
    _write(out, turns, rows)
    totals = work(read_journal(out / "samples.jsonl", SampleLine), what.fanouts)
    record |= {"finished": True, "ended": _stamp(), "work": totals}
    write_json(out / "run.json", record)
    if not failed_lives(out):
        shutil.rmtree(parts, ignore_errors=True)
    return out


def failed_lives(out: Path) -> int:
    """How many lives of a run failed."""
    rows = read_csv(out / "machines.csv", MachineRow)
    return len({key_of_row(row) for row in rows if row["status"] not in ("", OK)})


def _write(
    out: Path, turns: Sequence[Turn], rows: dict[tuple[object, ...], list[MachineRow]]
) -> None:
    """The table, in the order in which lives take turns."""
    known = (rows.get(turn.key, []) for turn in turns)
    write_csv(out / "machines.csv", MACHINES, (row for some in known for row in some))


def _begun(out: Path, record: RunJson) -> list[MachineRow]:
    """Rows of the lives of a run that ended well; ``record`` takes over what began with it.

    Raises ``UsageError`` where there is none, or one of another definition, code or machine.
    """
    if not (out / "run.json").exists():
        raise UsageError(f"there is no run in '{out}' to resume")
    before = read_json_record(out)
    changed = []
    if before["revision"]["source_digest"] != record["revision"]["source_digest"]:
        changed.append("the code")
    if before["machine_id"] != record["machine_id"]:
        changed.append("the machine")
    if before["versions"] != record["versions"]:
        changed.append("a package's version")
    then, now = (plain(r["definition"]) for r in (before, record))
    changed += [f"{k} (was {then.get(k)}, is {v})" for k, v in now.items() if then.get(k) != v]
    if changed:
        raise UsageError(
            f"{' and '.join(changed)} changed since the run in '{out}' was begun; give the same"
            " options as then, or another folder with --out"
        )
    record["started"] = before["started"]
    record["load_before"] = before["load_before"]
    if "distdgl_partitions" in before:
        record["distdgl_partitions"] = before["distdgl_partitions"]
    table = out / "machines.csv"
    rows = read_csv(table, MachineRow) if table.exists() else []
    return [row for row in rows if row["status"] in ("", OK)]


def _keep(journal: Path, lives: Collection[tuple[object, ...]]) -> None:
    """Leave those lines in a journal that are of ``lives``: others are measured again."""
    lines = [line for line in read_journal(journal, SampleLine) if key_of_line(line) in lives]
    write_text(journal, "".join(json.dumps(line) + "\n" for line in lines))


def _turns(what: Comparison, parts: Path) -> Iterator[Turn]:
    for life in range(what.lives):
        for count in what.machines:
            for rate in what.rates:
                there = Network(count, rate, what.delay, what.name)
                for program in (OURS, THEIRS) if life % 2 == 0 else (THEIRS, OURS):
                    if program == OURS or what.peer:
                        first = (program == OURS) == (life % 2 == 0)
                        plan = _plan(what, program, life, there, parts)
                        yield Turn(life, first, program, there, plan)
    for hops in what.hops:
        there = Network(min(what.machines), max(what.rates), what.delay, what.name)
        few = replace(what, fanouts=(_FEW,) * hops, hidden=16, batch_size=100)
        epochs = [(system, 0) for system in SYSTEMS]
        plan = replace(_plan(few, OURS, 0, there, parts), epochs=epochs, warm_steps=_FEW)
        yield Turn(0, True, OURS, there, plan)


def _plan(what: Comparison, program: str, life: int, there: Network, parts: Path) -> Plan:
    # Each of ours is in each place in turn.
    turned = [*SYSTEMS[life % len(SYSTEMS) :], *SYSTEMS[: life % len(SYSTEMS)]]
    systems = turned if program == OURS else [THEIRS]
    return Plan(
        dataset=what.dataset,
        method=what.method,
        fanouts=list(what.fanouts),
        batch_size=what.batch_size,
        hidden=what.hidden,
        learning_rate=what.learning_rate,
        # Ours draws the same in every life, which is looked at; of DistDGL each life is another.
        seed=what.seed if program == OURS else what.seed + life,
        epochs=[(system, number) for number in range(what.epochs + 1) for system in systems],
        max_steps=what.max_steps,
        warm_steps=what.warm_steps,
        folder=str(parts / f"parts-{there.machines}"),
        addresses=there.addresses,
    )


def _make_partitions(what: Comparison, folder: Path, record: RunJson, out: Path) -> None:
    """DistDGL's, in a process of their own: DGL's METIS leaves threads and memory behind.

    Those that are there stay; ``record`` tells of each once it is whole. Raises ``UsageError``
    where one is made again and comes out otherwise: lives of both would be compared.
    """
    known = record.setdefault("distdgl_partitions", {})
    for count in what.machines:
        place = folder / f"parts-{count}"
        if str(count) in known and (place / OWNERS).exists():
            continue
        shutil.rmtree(place, ignore_errors=True)
        words = ["partition", what.dataset, str(count), str(place), str(what.seed)]
        done = start.alone(
            [sys.executable, "-m", "gnnbench.contrib.emulated_network.distdgl", *words]
        )
        made: DglPartitionJson = json.loads(done.splitlines()[-1])
        if made != known.get(str(count), made):
            raise UsageError(
                f"DGL's partition for {count} machines came out otherwise than when the run was"
                " begun; give another folder with --out"
            )
        known[str(count)] = made
        write_json(out / "run.json", record)


def work(lines: Sequence[SampleLine], fanouts: Sequence[int]) -> list[WorkJson]:
    """Whether DistDGL draws as much as gnnbench does: edges and input nodes of whole batches.

    By number of machines: means over batches of all ranks, and DistDGL's less gnnbench's in parts
    of it with Welch's 95 % interval. Epochs of gnnbench that draw the same are taken once.
    """
    times: dict[int, dict[str, dict[str, list[float]]]] = {}
    taken: set[tuple[object, ...]] = set()
    for line in lines:
        key: tuple[object, ...] = tuple(line[k] for k in ("machines", "system", "epoch", "rank"))
        if line["system"] == THEIRS:
            key = (*key, line["rate_gbit_s"], line["life"])
        if (
            line["system"] not in ("hybrid", THEIRS)
            or key in taken
            or line["fanouts"] != list(fanouts)
        ):
            continue
        taken.add(key)
        own = times.setdefault(line["machines"], {}).setdefault(line["system"], {})
        for name in ("edges", "nodes"):
            own.setdefault(name, []).extend(line[name][:-1])  # the last batch may be smaller
    rows: list[WorkJson] = []
    for count, systems in sorted(times.items()):
        if not {"hybrid", THEIRS} <= systems.keys():
            continue
        for name in ("edges", "nodes"):
            ours, theirs = systems["hybrid"][name], systems[THEIRS][name]
            mean, differs = statistics.fmean(ours), welch(ours, theirs)
            rows.append(
                {
                    "machines": count,
                    "of": name,
                    "gnnbench": asdict(mean_interval(ours)),
                    "distdgl": asdict(mean_interval(theirs)),
                    "difference": [v / mean for v in (differs.value, differs.low, differs.high)],
                }
            )
    return rows


def _record(what: Comparison) -> RunJson:
    machine_record = machine.record()
    return {
        "experiment": {
            "name": "machines",
            "title": "FastSample's partitions and DistDGL on emulated machines",
        },
        "command": _command(what),
        "definition": asdict(what),
        "revision": machine.revision(),
        "versions": machine.versions(),
        "machine": machine_record,
        "machine_id": machine.fingerprint(machine_record),
        "load_before": machine.load(),
        "started": _stamp(),
        "finished": False,
    }


def _command(what: Comparison) -> str:
    """The command that makes such a run: what is not its default is named."""
    words = ["python -m gnnbench.contrib.emulated_network compare"]
    for entry in fields(what):
        value = getattr(what, entry.name)
        if value == entry.default or entry.name in ("name", "learning_rate"):
            continue
        if entry.name == "dataset":
            words.insert(1, f"'{value}'")
        elif entry.name == "peer":
            words.append("--no-peer")
        else:
            text = ",".join(map(str, value)) if isinstance(value, tuple) else value
            words.append(f"--{entry.name.replace('_', '-')} {text}")
    return " ".join(words)


def _stamp() -> str:
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
