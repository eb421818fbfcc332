"""A whole run: plan, measure pair by pair, write after every step, derive the exit code."""

from __future__ import annotations

import errno
from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import asdict, astuple, dataclass, field, replace
from functools import partial
from pathlib import Path

from gnnbench.config.experiment import Experiment
from gnnbench.core import registry
from gnnbench.core.cell import Cell
from gnnbench.core.errors import (
    EXIT_CELLS_FAILED,
    EXIT_INCORRECT,
    EXIT_MISSING,
    EXIT_OK,
    UsageError,
)
from gnnbench.core.files import write_json
from gnnbench.core.units import binary, taking
from gnnbench.datasets.paths import data_root
from gnnbench.datasets.store.disk import free_disk_bytes
from gnnbench.harness import folder as folders
from gnnbench.harness.environment import facts
from gnnbench.harness.estimate import preparations
from gnnbench.harness.failures import FAILED
from gnnbench.harness.idle_wait import IdleWait, limit_s
from gnnbench.harness.interpreter import HERE, Environments
from gnnbench.harness.journal import RunJournal
from gnnbench.harness.pairing import Observer, Pairing
from gnnbench.harness.plan import CellPair, Plan
from gnnbench.harness.reduce.tables import write_tables
from gnnbench.harness.retry import Again, again
from gnnbench.harness.shared_cache import SharedMemoryCache
from gnnbench.measure import machine
from gnnbench.schema import CellRow
from gnnbench.schema.run_json import RunJson
from gnnbench.statistics import noise
from gnnbench.statistics.noise import Calibration

TOLD_S, TOLD_BYTES = 10.0, 2**30
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True)
class Request:
    """What to run and where; ``experiment`` is resolved."""

    experiment: Experiment
    plan: Plan
    out: Path
    profile: str = ""
    resume: bool = False
    force: bool = False
    only_failed: bool = False
    keep_going: bool = True
    named_systems: frozenset[str] = frozenset()
    named_datasets: frozenset[str] = frozenset()
    environments: Environments = HERE
    wait: bool = False  # for a quiet machine, up to a limit


@dataclass
class Outcome:
    """The results' folder, the rows, and the exit code of the process."""

    folder: Path
    rows: list[CellRow]
    exit_code: int
    figures: list[Path] = field(default_factory=list)


class Interrupted(Exception):
    """The user stopped the run; finished measurements are in ``folder``."""

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder))
        self.folder = folder


def run(
    request: Request, observer: Observer, shared_cache: SharedMemoryCache | None = None
) -> Outcome:
    """Run or continue an experiment. Raises ``Interrupted`` on Ctrl-C, ``UsageError``.

    ``shared_cache``: a cache of several successive runs, which the caller closes.
    """
    if request.resume and not request.out.is_dir():
        raise folders.nothing_there(request.out, request.experiment)
    with folders.locked(request.out), registry.without_plugins():
        try:
            if shared_cache is not None:
                return _run_locked(request, observer, shared_cache)
            with closing(SharedMemoryCache()) as own:
                return _run_locked(request, observer, own)
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise
            raise UsageError(
                f"cannot write to '{request.out}' ({(error.strerror or '').lower()}); make room and"
                " go on by giving the same command with --resume"
            ) from None


def _run_locked(request: Request, observer: Observer, shared_cache: SharedMemoryCache) -> Outcome:
    experiment = request.experiment
    record = _record(request)
    if request.resume:
        path = folders.find_to_resume(
            request.out, experiment, record, request.force, request.only_failed
        )
        observer.note(f"continuing {path.name}")
        now = record["calibration"]
        record = folders.reopen(path, record)
        record["calibration"] = record.get("calibration") or now
    else:
        path = folders.create(request.out, experiment, record)
    with folders.writing(path):
        return _measure_into(path, record, request, observer, shared_cache)


def _measure_into(
    path: Path,
    record: RunJson,
    request: Request,
    observer: Observer,
    shared_cache: SharedMemoryCache,
) -> Outcome:
    experiment, plan = request.experiment, request.plan
    journal = RunJournal(path)
    calibrations = [Calibration.from_json(c) for c in record["calibration"]]
    threads = max((machine.resolve_threads(cell.threads) for cell in plan.cells), default=1)
    idle_wait = IdleWait(
        limit_s(experiment.measure.rule.gives_verdicts) if request.wait else 0.0,
        max(machine.usable_cores() - threads, 0),
    )
    pairing = Pairing(
        journal, experiment.measure, observer, shared_cache, calibrations, idle_wait=idle_wait
    )
    stopped = False
    write = partial(write_tables, path, plan, journal, experiment, calibrations)
    try:
        todo = [p for p in plan.pairs if not _finished(p, journal)]
        repeated = again(path, plan) if request.only_failed else None
        if repeated is not None:
            observer.note(repeated.note)
            repeated.forget(journal)
            todo = repeated.pairs
        observer.plan(len(todo), experiment.measure.time_budget_s)
        first = todo[0].system.dataset if todo else ""
        timeout_s = experiment.measure.cell_timeout_s
        shared_cache.start_run(path / "logs", timeout_s, request.environments, first)
        _prepare(todo, plan, shared_cache, observer)
        if any(pair.system.id not in plan.failures for pair in todo):
            idle_wait.wait(observer.note)
        for pair in todo:
            if pair.system.id in plan.failures or (pair.direct and _broken(pair, journal)):
                continue
            pairing.run(_alone_if_needed(pair, plan, journal))
            if repeated is not None:
                repeated.settle(pair, journal)
            write()
            observer.pair_done()
            if stopped := not request.keep_going and _any_failed(pair, journal):
                observer.note(
                    "stopped at the first failure; go on by giving the same with --resume"
                )
                break
        for cell in _unmeasured(plan, journal):
            if stopped or request.only_failed:
                break
            pairing.run(CellPair(cell))
    except KeyboardInterrupt:
        write()
        raise Interrupted(path) from None
    finally:
        journal.close()
    rows = write()
    datasets = {row["dataset"] for row in rows}
    write_json(
        path / "run.json",
        {
            **record,
            "started": path.name.split("-")[1],
            "ended": folders.utc_stamp(),
            "finished": not stopped,
            "load_after": machine.load(),
            "notes": plan.notes,
            "busy": journal.busy(),
            "prepared": {d: f for d, f in shared_cache.prepared.items() if d in datasets},
            "held": {d: f for d, f in shared_cache.facts.items() if d in datasets},
        },
    )
    # What was there when the run was planned has gone since: that counts, whoever named it.
    gone = {r["dataset"] for r in rows if r["status"] == "missing_data"} - plan.absent
    named_absent = bool(gone or plan.absent & request.named_datasets)
    return Outcome(path, rows, exit_code(rows, request.named_systems, named_absent))


def _record(request: Request) -> RunJson:
    """Return the content of ``run.json`` at the start of a run."""
    experiment, plan = request.experiment, request.plan
    record: RunJson = {
        "experiment": experiment.model_dump(mode="json"),
        "definition_hash": experiment.hash,
        "profile": request.profile,
        **folders.identity(),
        "environments": request.environments.record(),
        "plugins": folders.plugins(plan.cells),
        "load_before": machine.load(),
    }
    if plan.sweeps:
        record["sweeps"] = plan.sweeps
    record["calibration"] = [asdict(c) for c in noise.load(record["machine_id"])]
    return record


def only_failed(request: Request) -> Again:
    """Return what ``--only-failed`` measures of the last run. Raises ``UsageError`` without one."""
    path = folders.find_to_resume(
        request.out, request.experiment, _record(request), request.force, repairs=True
    )
    return again(path, request.plan)


def unfinished(request: Request) -> Plan:
    """Return what ``--resume`` measures of the last run. Raises ``UsageError`` without one."""
    plan = request.plan
    path = folders.find_to_resume(request.out, request.experiment, _record(request), request.force)
    with closing(RunJournal(path)) as journal:
        pairs = [pair for pair in plan.pairs if not _finished(pair, journal)]
    ids = {c.id for pair in pairs for c in (pair.reference, pair.system) if c is not None}
    return replace(plan, cells=[c for c in plan.cells if c.id in ids], pairs=pairs)


def _finished(pair: CellPair, journal: RunJournal) -> bool:
    alone = not pair.direct and journal.finished(CellPair(pair.system))
    return journal.finished(pair) or alone


def _any_failed(pair: CellPair, journal: RunJournal) -> bool:
    cells = [pair.system] if pair.reference is None else [pair.system, pair.reference]
    return any(c.id in journal.failures and journal.failures[c.id].status in FAILED for c in cells)


def _unmeasured(plan: Plan, journal: RunJournal) -> list[Cell]:
    """Return cells that were never measured because those compared with them failed."""
    cells = {c.id: c for p in plan.pairs for c in (p.reference, p.system) if c is not None}
    return [
        c
        for c in cells.values()
        if c.id not in plan.failures and c.id not in journal.failures and not journal.measured(c)
    ]


def _broken(pair: CellPair, journal: RunJournal) -> bool:
    return any(c is not None and c.id in journal.failures for c in (pair.system, pair.reference))


def _alone_if_needed(pair: CellPair, plan: Plan, journal: RunJournal) -> CellPair:
    reference = pair.reference
    if reference is None or (
        reference.id not in journal.failures and reference.id not in plan.failures
    ):
        return pair
    return CellPair(pair.system)


def _prepare(
    pairs: list[CellPair], plan: Plan, shared_cache: SharedMemoryCache, observer: Observer
) -> None:
    """Prepare every dataset; if that fails, its cells fail.

    Raises ``UsageError`` if the disk has no space for all of them.
    """
    _check_disk(plan, observer)
    able = [p for p in pairs if facts(p.system.system).needs_graph]
    for dataset in dict.fromkeys(p.system.dataset for p in able):
        cell: Cell = next(p.system for p in able if p.system.dataset == dataset)
        observer.step(f"{dataset}: preparing", 0.0)
        if (failure := shared_cache.prepare(cell)) is not None:
            observer.note(f"{dataset}: {failure.reason}")
            plan.failures.update({c.id: failure for c in plan.cells if c.dataset == dataset})
            plan.absent.add(dataset)


def _check_disk(plan: Plan, observer: Observer) -> None:
    """Check that all datasets fit on the disk together; report long or large preparations."""
    costs = preparations(plan)
    for dataset, cost in costs.items():
        if cost.seconds > TOLD_S or max(cost.memory_bytes, cost.disk_bytes) > TOLD_BYTES:
            observer.note(f"{dataset} is to be prepared first: {taking(*astuple(cost))}")
    needed, free = sum(cost.disk_bytes for cost in costs.values()), free_disk_bytes(data_root())
    if needed > free:
        raise UsageError(
            f"preparing {', '.join(costs)} takes about {binary(needed)} of disk where"
            f" {binary(free)} are free below {data_root()}; free some space, set"
            " GNNBENCH_DATA to a folder on another disk, or give fewer --datasets"
        )


def exit_code(
    rows: Sequence[CellRow],
    named_systems: Collection[str] = (),
    named_absent: bool = False,
) -> int:
    """Return the documented exit code: incorrect results first, then failed cells, then missing
    things.

    ``missing_dep`` and ``unsupported`` count only if the user named the system, ``missing_data``
    only if the user named the dataset; all of them count if nothing at all could be measured.
    """
    statuses = {r["status"] for r in rows}
    if "incorrect" in statuses:
        return EXIT_INCORRECT
    named = {r["status"] for r in rows if r["system"] in named_systems}
    if statuses & set(FAILED) or "unsupported" in named:
        return EXIT_CELLS_FAILED
    if named_absent or "missing_dep" in named:
        return EXIT_MISSING
    if rows and "ok" not in statuses:
        absent = statuses & {"missing_dep", "missing_data"}
        return EXIT_MISSING if absent else EXIT_CELLS_FAILED
    return EXIT_OK
