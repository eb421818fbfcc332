"""FastSample's partitions and DistDGL on emulated machines, in turn, life by life."""

from __future__ import annotations

import json
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gnnbench.errors import UsageError
from gnnbench.files import Journal, ensure_folder, read_journal, write_json
from gnnbench.machines import link, network, start
from gnnbench.machines.network import Network
from gnnbench.machines.plan import Plan
from gnnbench.measure import machine
from gnnbench.measure.stats import mean_interval, welch
from gnnbench.results.schema import MACHINES
from gnnbench.results.writer import write_csv

OURS, THEIRS, DGL = "gnnbench", "distdgl", "dgl"
SYSTEMS = ("vanilla", "hybrid", "hybrid-fused")
LIFE_S = 180.0  # that a life may take before it is taken for hung
COPY_S = 0.25
_FEW = 3  # fanout and steps where rounds of some hops are counted
Row = dict[str, Any]
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


def compare(what: Comparison, out: Path, say: Say = print) -> Path:
    """Run it and write ``machines.csv``, ``samples.jsonl`` and ``run.json`` into ``out``.

    Programs take turns: in every life each setting has one life of each program, the one that was
    first then last. Raises ``MissingError`` without root, ``CellsFailedError`` where a program
    fails; what was measured before is on disk.
    """
    network.need()
    for rate in what.rates:
        Network(max(what.machines), rate, what.delay, what.name)  # wrong values, before anything
    ensure_folder(out)
    if (out / "machines.csv").exists():
        raise UsageError(f"'{out}' holds a run already; give another folder with --out")
    record = _record(what)
    write_json(out / "run.json", record)
    rows: list[Row] = []
    with (
        closing(Journal(out / "samples.jsonl")) as journal,
        tempfile.TemporaryDirectory() as folder,
    ):
        parts = _partitions(what, Path(folder)) if what.peer else {}
        record["distdgl_partitions"] = {str(k): v for k, v in parts.items()}
        for life, count, rate, program in _turns(what):
            first = (program == OURS) == (life % 2 == 0)
            say(f"life {life + 1} of {what.lives}, {count} machines, {rate:g} Gbit/s: {program}")
            there = Network(count, rate, what.delay, what.name)
            plan = _plan(what, program, life, there, Path(folder))
            about = {"life": life, "first": first}
            rows += _life(what, there, plan, program, about, journal, Path(folder))
            write_csv(out / "machines.csv", MACHINES, rows)
        for hops in what.hops:
            say(f"rounds of {hops} hops")
            there = Network(min(what.machines), max(what.rates), what.delay, what.name)
            few = replace(what, fanouts=(_FEW,) * hops, hidden=16, batch_size=100)
            epochs = [(system, 0) for system in SYSTEMS]
            plan = replace(_plan(few, OURS, 0, there, Path(folder)), epochs=epochs, warm_steps=_FEW)
            about = {"life": 0, "first": True}
            rows += _life(few, there, plan, OURS, about, journal, Path(folder))
            write_csv(out / "machines.csv", MACHINES, rows)
    told = work(read_journal(out / "samples.jsonl"), what.fanouts)
    record |= {"finished": True, "ended": _stamp(), "work": told}
    write_json(out / "run.json", record)
    return out


def _turns(what: Comparison) -> Iterator[tuple[int, int, float, str]]:
    for life in range(what.lives):
        for count in what.machines:
            for rate in what.rates:
                for program in (OURS, THEIRS) if life % 2 == 0 else (THEIRS, OURS):
                    if program == OURS or what.peer:
                        yield life, count, rate, program


def _plan(what: Comparison, program: str, life: int, there: Network, folder: Path) -> Plan:
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
        folder=str(folder / f"parts-{there.machines}"),
        addresses=there.addresses,
    )


def _partitions(what: Comparison, folder: Path) -> dict[int, Row]:
    """DistDGL's, in a process of their own: DGL's METIS leaves threads and memory behind."""
    found = {}
    for count in what.machines:
        words = ["partition", what.dataset, str(count), str(folder / f"parts-{count}")]
        words.append(str(what.seed))
        done = start.alone([sys.executable, "-m", "gnnbench.machines.distdgl", *words])
        found[count] = json.loads(done.splitlines()[-1])
    return found


def _life(
    what: Comparison,
    there: Network,
    plan: Plan,
    program: str,
    about: Row,
    journal: Journal,
    folder: Path,
) -> list[Row]:
    """One life on a network of its own; its rows."""
    count = there.machines
    path, outs = folder / "plan.json", [folder / f"out-{rank}.json" for rank in range(count)]
    plan.write(path)
    for out in outs:
        out.unlink(missing_ok=True)
    module = "gnnbench.machines.rank" if program == OURS else "gnnbench.machines.distdgl"
    words = [sys.executable, "-m", module, *(() if program == OURS else ("host",))]
    commands = [[*words, str(path), str(out)] for out in outs]
    logs: list[Path | None] = [folder / f"{program}-{rank}.log" for rank in range(count)]
    with network.made(there):
        copied = link.measured(there, COPY_S)
        begun, busy, own = time.monotonic(), machine.busy_seconds(), _own_seconds()
        start.run(there, commands, logs, extra={"OMP_NUM_THREADS": "1"}, limit=LIFE_S)
        taken = time.monotonic() - begun
        others = (machine.busy_seconds() - busy - (_own_seconds() - own)) / taken
    told = [row for out in outs for row in json.loads(out.read_text(encoding="utf-8"))]
    for row in told:
        setting = {"machines": count, "rate_gbit_s": there.rate, "fanouts": plan.fanouts}
        journal.append({**setting, **about, "program": program, **row})
    common = {
        **about,
        "dataset": what.dataset,
        "partition": what.method if program == OURS else DGL,
        "machines": count,
        "rate_gbit_s": there.rate,
        "delay_s": there.delay / 1e3,
        "fanouts": "/".join(map(str, plan.fanouts)),
        "hops": len(plan.fanouts),
        "batch_size": plan.batch_size,
        "hidden": plan.hidden,
        "copy_gbit_s": copied,
        "others_cores": max(0.0, others),
    }
    return _rows(common, told)


def _rows(common: Row, told: Sequence[Row]) -> list[Row]:
    """Rows of ``machines.csv`` of a life's epochs, as the ranks told of them."""
    columns = {c.name for c in MACHINES}
    vanilla = {r["epoch"]: r["losses"] for r in told if r["system"] == "vanilla"}
    last = max(r["epoch"] for r in told)
    rows = []
    for row in told:
        losses = row["losses"]
        beside = vanilla.get(row["epoch"]) if row["system"] != "vanilla" else None
        rows.append(
            {
                **common,
                **{key: value for key, value in row.items() if key in columns},
                "order": row["place"],
                # Of a single epoch nothing is timed: it is there for its counts.
                "warmup": row["epoch"] == 0 or last == 0,
                "sampled_edges": sum(row["edges"]),
                "input_nodes": sum(row["nodes"]),
                "first_loss": losses[0],
                "last_loss": losses[-1],
                "loss_gap": _gap(losses, beside) if beside else None,
            }
        )
    return rows


def _gap(losses: Sequence[float], others: Sequence[float]) -> float:
    return max(abs(a - b) for a, b in zip(losses, others, strict=True))


def work(lines: Sequence[Row], fanouts: Sequence[int]) -> list[Row]:
    """Whether DistDGL draws as much as gnnbench does: edges and input nodes of whole batches.

    By number of machines: means over batches of all ranks, and DistDGL's less gnnbench's in parts
    of it with Welch's 95 % interval. Epochs of gnnbench that draw the same are taken once.
    """
    found: dict[int, dict[str, dict[str, list[float]]]] = {}
    taken: set[tuple[Any, ...]] = set()
    for line in lines:
        key: tuple[Any, ...] = tuple(line[k] for k in ("machines", "system", "epoch", "rank"))
        if line["system"] == THEIRS:
            key = (*key, line["rate_gbit_s"], line["life"])
        if (
            line["system"] not in ("hybrid", THEIRS)
            or key in taken
            or line["fanouts"] != list(fanouts)
        ):
            continue
        taken.add(key)
        own = found.setdefault(line["machines"], {}).setdefault(line["system"], {})
        for name in ("edges", "nodes"):
            own.setdefault(name, []).extend(line[name][:-1])  # the last batch may be smaller
    rows = []
    for count, systems in sorted(found.items()):
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


def _own_seconds() -> float:
    """CPU time of this process and of those below it that have ended."""
    told = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(r.ru_utime + r.ru_stime for r in told)


def _record(what: Comparison) -> Row:
    found = machine.record()
    return {
        "experiment": {
            "name": "machines",
            "title": "FastSample's partitions and DistDGL on emulated machines",
        },
        "command": _command(what),
        "definition": asdict(what),
        "revision": machine.revision(),
        "versions": machine.versions(),
        "machine": found,
        "machine_id": machine.fingerprint(found),
        "load_before": machine.load(),
        "started": _stamp(),
        "finished": False,
    }


def _command(what: Comparison) -> str:
    """The command that makes such a run: what is not its default is named."""
    words = ["python -m gnnbench.machines compare"]
    for entry in fields(what):
        value = getattr(what, entry.name)
        if value == entry.default or entry.name in ("name", "learning_rate"):
            continue
        if entry.name == "dataset":
            words.insert(1, f"'{value}'")
        elif entry.name == "peer":
            words.append("--no-peer")
        else:
            told = ",".join(map(str, value)) if isinstance(value, tuple) else value
            words.append(f"--{entry.name.replace('_', '-')} {told}")
    return " ".join(words)


def _stamp() -> str:
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
