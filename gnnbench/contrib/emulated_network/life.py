"""One life of one program on a network of its own: what it is to do, and the rows it comes to."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gnnbench.contrib.emulated_network import link, network, start
from gnnbench.contrib.emulated_network.network import Network
from gnnbench.contrib.emulated_network.plan import Plan
from gnnbench.contrib.emulated_network.records import EpochReport, SampleLine, Setting
from gnnbench.core.errors import CellsFailedError
from gnnbench.measure import machine
from gnnbench.schema import MachineRow

OURS, THEIRS, DGL = "gnnbench", "distdgl", "dgl"
LIFE_S = 1800.0  # that a life may take that gets on
COPY_S = 0.25
OK = "ok"


@dataclass(frozen=True)
class Turn:
    """A life of one program: the ``life``-th of its setting, ``first`` of the two or not."""

    life: int
    first: bool
    program: str
    there: Network
    plan: Plan

    @property
    def key(self) -> tuple[object, ...]:
        """What tells a run's lives apart."""
        return key_of_line(self.setting)

    @property
    def setting(self) -> Setting:
        """The same by name, as each line of ``samples.jsonl`` has it."""
        plan, there = self.plan, self.there
        return {
            "life": self.life, "program": self.program, "machines": there.machines,
            "rate_gbit_s": there.rate, "fanouts": plan.fanouts, "batch_size": plan.batch_size,
            "hidden": plan.hidden,
        }  # fmt: skip

    @property
    def words(self) -> str:
        """``life 1, 2 machines, 1 Gbit/s: gnnbench``."""
        where = f"{self.there.machines} machines, {self.there.rate:g} Gbit/s: {self.program}"
        if not any(number for _, number in self.plan.epochs):
            return f"rounds of {len(self.plan.fanouts)} hops, {where}"
        return f"life {self.life + 1}, {where}"


def key_of_row(row: MachineRow) -> tuple[object, ...]:
    """``Turn.key`` of a row of ``machines.csv``."""
    return key_of_line(
        {
            "life": row.life,
            "program": THEIRS if row.system == THEIRS else OURS,
            "machines": row.machines,
            "rate_gbit_s": row.rate_gbit_s,
            "fanouts": list(map(int, row.fanouts.split("/"))),
            "batch_size": row.batch_size,
            "hidden": row.hidden,
        }
    )


def key_of_line(line: Setting) -> tuple[object, ...]:
    """``Turn.key`` of a line of ``samples.jsonl``."""
    return (
        line["life"], line["program"], line["machines"], line["rate_gbit_s"], line["batch_size"],
        line["hidden"], tuple(line["fanouts"]),
    )  # fmt: skip


def live(turn: Turn, folder: Path) -> tuple[list[MachineRow], list[SampleLine]]:
    """One life on a network of its own: its rows, and lines for the journal.

    Of one that fails rows that say so, one for each system, and no line. ``folder`` is for what its
    processes read and write.
    """
    there, plan, program = turn.there, turn.plan, turn.program
    path = folder / "plan.json"
    outs = [folder / f"out-{rank}.json" for rank in range(there.machines)]
    plan.write(path)
    for out in outs:
        out.unlink(missing_ok=True)
    module = (
        "gnnbench.contrib.emulated_network.rank"
        if program == OURS
        else "gnnbench.contrib.emulated_network.distdgl"
    )
    words = [sys.executable, "-m", module, *(() if program == OURS else ("host",))]
    commands = [[*words, str(path), str(out)] for out in outs]
    logs: list[Path | None] = [folder / f"{program}-{r}.log" for r in range(there.machines)]
    common = _common(turn)
    try:
        with network.made(there):
            common.copy_gbit_s = link.measured(there, COPY_S)
            begun, busy, own = time.monotonic(), machine.busy_seconds(), _own_seconds()
            start.run(
                there, commands, logs, extra={"OMP_NUM_THREADS": "1"}, limit=LIFE_S, watched=True
            )
            taken = time.monotonic() - begun
            others = (machine.busy_seconds() - busy - (_own_seconds() - own)) / taken
        reports: list[EpochReport] = [
            row for out in outs for row in json.loads(out.read_text(encoding="utf-8"))
        ]
    except CellsFailedError as error:
        status = error.status if isinstance(error, start.LifeFailedError) else "crash"
        failed = replace(common, status=status, reason=str(error))
        systems = dict.fromkeys(system for system, _ in plan.epochs)
        return [replace(failed, system=system) for system in systems], []
    rows = rows_of(replace(common, others_cores=max(0.0, others), status=OK), reports)
    return rows, [{**turn.setting, "first": turn.first, **row} for row in reports]


def _common(turn: Turn) -> MachineRow:
    there, plan = turn.there, turn.plan
    return MachineRow(
        life=turn.life,
        first=turn.first,
        dataset=plan.dataset,
        partition=plan.method if turn.program == OURS else DGL,
        machines=there.machines,
        rate_gbit_s=there.rate,
        delay_s=there.delay / 1e3,
        fanouts="/".join(map(str, plan.fanouts)),
        hops=len(plan.fanouts),
        batch_size=plan.batch_size,
        hidden=plan.hidden,
    )


def rows_of(common: MachineRow, reports: Sequence[EpochReport]) -> list[MachineRow]:
    """Rows of ``machines.csv`` of a trial's epochs, as the ranks report them."""
    vanilla = {r["epoch"]: r["losses"] for r in reports if r["system"] == "vanilla"}
    last = max(r["epoch"] for r in reports)
    rows = []
    for report in reports:
        losses = report["losses"]
        vanilla_losses = vanilla.get(report["epoch"]) if report["system"] != "vanilla" else None
        row = replace(
            common,
            system=report["system"],
            epoch=report["epoch"],
            rank=report["rank"],
            order=report["place"],
            # Of a single epoch nothing is timed: it is there for its counts.
            warmup=report["epoch"] == 0 or last == 0,
            wall_s=report["wall_s"],
            sample_s=report["sample_s"],
            features_s=report["features_s"],
            steps=report["steps"],
            seeds=report["seeds"],
            sampled_edges=sum(report["edges"]),
            input_nodes=sum(report["nodes"]),
            rounds=report["rounds"],
            size_calls=report.get("size_calls"),
            reduces=report["reduces"],
            sample_bytes=report.get("sample_bytes"),
            features_bytes=report.get("features_bytes"),
            size_bytes=report.get("size_bytes"),
            reduced_bytes=report.get("reduced_bytes"),
            link_sent_bytes=report["link_sent_bytes"],
            link_received_bytes=report["link_received_bytes"],
            first_loss=losses[0],
            last_loss=losses[-1],
            loss_gap=_gap(losses, vanilla_losses) if vanilla_losses else None,
        )
        rows.append(row)
    return rows


def _gap(losses: Sequence[float], others: Sequence[float]) -> float:
    return max(abs(a - b) for a, b in zip(losses, others, strict=True))


def _own_seconds() -> float:
    """CPU time of this process and of those below it that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(r.ru_utime + r.ru_stime for r in usages)
