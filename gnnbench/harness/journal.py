"""The journal of a run: ``events.jsonl`` and ``samples.jsonl``.

``JournalState`` is what they say; ``RunJournal`` appends to them. Every change is on disk before
it counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from gnnbench.analysis.grouping import group_by
from gnnbench.core.cell import Cell
from gnnbench.core.files import Journal
from gnnbench.harness.failures import Failure
from gnnbench.harness.plan import CellPair
from gnnbench.harness.protocol import AuditAnswer, TimedEpoch
from gnnbench.schema import pack
from gnnbench.schema.events import (
    BusyEvent,
    DoneEvent,
    Event,
    FailedEvent,
    ProbedEvent,
    ProfileEvent,
    ReportEvent,
    RetrainedEvent,
    RetryEvent,
    RoundsEvent,
    TrialEvent,
    parse_event,
    read_events,
    read_samples,
)
from gnnbench.schema.reports import CellReport, Profile
from gnnbench.schema.samples import EpochSample, read_counts


class JournalState:
    """The state of a run after all events and samples so far.

    A trial counts when it has finished and is neither void nor superseded by a retry. Samples are
    in the order of their measurement.
    """

    def __init__(self, events: Iterable[Event] = (), samples: Iterable[EpochSample] = ()) -> None:
        self.samples: list[EpochSample] = list(samples)
        self.reports: dict[str, CellReport] = {}  # by cell id
        self.profiles: dict[str, Profile] = {}  # by cell id
        self.probes: defaultdict[str, list[ProbedEvent]] = defaultdict(list)  # by cell id
        self.failures: dict[str, Failure] = {}
        self.retrained: defaultdict[str, list[list[EpochSample]]] = defaultdict(list)  # by cell id
        self.done: dict[str, DoneEvent] = {}  # pair id -> why it stopped
        self.rounds_of: dict[str, int] = {}  # pair id -> rounds of each trial
        self._trials: defaultdict[str, list[TrialEvent]] = defaultdict(list)  # finished, by pair id
        self._valid: set[tuple[str, int]] = set()  # (pair id, trial) that count
        self._before_retry: defaultdict[str, int] = defaultdict(int)  # trials, by pair id
        for event in events:
            self.apply(event)

    def apply(self, event: Event) -> None:
        """Update the state by an event; unknown events change nothing."""
        update = getattr(self, f"_apply_{event['event']}", None)
        if update is not None:
            update(event)

    def _apply_life(self, event: TrialEvent) -> None:
        self._trials[event["pair"]].append(event)
        if not event["void"]:
            self._valid.add((event["pair"], event["life"]))

    def _apply_rounds(self, event: RoundsEvent) -> None:
        self.rounds_of[event["pair"]] = event["rounds"]

    def _apply_report(self, event: ReportEvent) -> None:
        self.reports.setdefault(event["cell"], {}).update(event["report"])

    def _apply_profile(self, event: ProfileEvent) -> None:
        self.profiles[event["cell"]] = event["profile"]

    def _apply_probed(self, event: ProbedEvent) -> None:
        if "median" in event:  # older runs recorded the minimum alone
            self.probes[event["cell"]].append(event)

    def _apply_retrained(self, event: RetrainedEvent) -> None:
        self.retrained[event["cell"]] += event["trainings"]

    def _apply_failed(self, event: FailedEvent) -> None:
        self.failures.setdefault(event["cell"], Failure(event["status"], event["reason"]))

    def _apply_done(self, event: DoneEvent) -> None:
        self.done[event["pair"]] = event

    def _apply_retry(self, event: RetryEvent) -> None:
        for cell in event["cells"]:
            self.failures.pop(cell, None)
            self.profiles.pop(cell, None)
            report = self.reports.get(cell, CellReport())  # the whole gate again
            report.pop("check", None)
            report.pop("glance", None)
        for pair in event["pairs"]:
            self.done.pop(pair, None)
            self.rounds_of.pop(pair, None)
            self._valid = {key for key in self._valid if key[0] != pair}
            self._before_retry[pair] = len(self._trials[pair])

    def counts(self, sample: EpochSample) -> bool:
        """Whether a sample's trial counts."""
        return (sample.pair, sample.life) in self._valid

    def finished(self, pair: CellPair) -> bool:
        """Whether nothing is left to measure for this pair."""
        return pair.id in self.done or pair.system.id in self.failures

    def next_trial(self, pair: CellPair) -> int:
        """A number that no trial of this pair has, finished or not."""
        started = [s.life for s in self.samples if s.pair == pair.id]
        return max([*started, *(r["life"] for r in self._trials[pair.id])], default=-1) + 1

    def trials(self, pair: CellPair) -> list[TrialEvent]:
        """Trials that count, in order: ``life``, ``start_s``, ``seconds``, ``doubt``, ``void``."""
        return [r for r in self._trials[pair.id] if (pair.id, r["life"]) in self._valid]

    def last_trial(self, pair: CellPair) -> TrialEvent | None:
        """The trial that finished last since a retry, void or not."""
        finished = self._trials[pair.id][self._before_retry[pair.id] :]
        return finished[-1] if finished else None

    def void_trials(self, pair: CellPair) -> int:
        """Number of void trials since a retry."""
        return len(self.void_doubts(pair.id))

    def pair_doubts(self, pair: str) -> list[str]:
        """Doubts of a pair's trials that count, by the pair's id."""
        trials = self._trials[pair]
        return [r["doubt"] for r in trials if r["doubt"] and (pair, r["life"]) in self._valid]

    def void_doubts(self, pair: str) -> list[str]:
        """Why trials since a retry were void and measured again, by the pair's id."""
        return [r["doubt"] for r in self._trials[pair][self._before_retry[pair] :] if r["void"]]

    def cell_doubts(self, cell: Cell) -> list[str]:
        """One doubt per trial of a cell that counts, of any pair; "" for a reliable trial."""
        own = {(s.pair, s.life) for s in self.measured(cell)}
        trials = ((pair, r) for pair in self._trials for r in self._trials[pair])
        return [r["doubt"] for pair, r in trials if (pair, r["life"]) in own]

    def excesses(self, pair: CellPair) -> dict[int, str]:
        """How this pair's training differed from others, by trial, for trials with an excess."""
        return {r["life"]: r["excess"] for r in self._trials[pair.id] if r.get("excess")}

    def busy(self) -> BusyEvent:
        """CPU use of other programs in all trials (s), summed; see ``BusyRecord``."""
        total = BusyEvent(foreign_s=0.0, foreign_cpu_s=0.0, seconds=0.0, cpu_s={})
        for busy in (
            r["busy"] for trials in self._trials.values() for r in trials if r.get("busy")
        ):
            total["foreign_s"] += busy["foreign_s"]
            total["foreign_cpu_s"] += busy["foreign_cpu_s"]
            total["seconds"] += busy["seconds"]
            for name, cpu_s in busy["cpu_s"].items():
                total["cpu_s"][name] = total["cpu_s"].get(name, 0.0) + cpu_s
        return total

    def trainings(self, cell: Cell, length: int) -> list[list[EpochSample]]:
        """The first ``length`` epochs of trainings of a cell: finished trials and retrainings.

        Shorter trainings are left out, and of those over the same epochs all but the first.
        """
        finished = {(pair, r["life"]) for pair, trials in self._trials.items() for r in trials}
        own = [s for s in self.samples if s.id == cell.id]
        trials = _by_trial(s for s in own if (s.pair, s.life) in finished)
        distinct: dict[tuple[int, ...], list[EpochSample]] = {}
        for training in (*trials, *self.retrained[cell.id]):
            if len(training) >= length:
                epochs = tuple(s.epoch for s in training[:length])
                distinct.setdefault(epochs, training[:length])
        return list(distinct.values())

    def measured(self, cell: Cell, pair: CellPair | None = None) -> list[EpochSample]:
        """Samples of a cell that count, without warm-ups, of one pair or of all."""
        return self._samples_of(cell, pair, warmup=False)

    def warm_ups(self, cell: Cell, pair: CellPair | None = None) -> list[EpochSample]:
        """Warm-up samples of a cell that count, of one pair or of all."""
        return self._samples_of(cell, pair, warmup=True)

    def _samples_of(self, cell: Cell, pair: CellPair | None, warmup: bool) -> list[EpochSample]:
        return [
            s
            for s in self.samples
            if s.id == cell.id
            and s.warmup == warmup
            and (pair is None or s.pair == pair.id)
            and self.counts(s)
        ]

    def by_trial(self, cell: Cell, pair: CellPair | None = None) -> list[list[EpochSample]]:
        """Measured samples of a cell, trial by trial."""
        return _by_trial(self.measured(cell, pair))

    def trial_samples(self, pair: CellPair, cell: Cell, trial: int) -> list[EpochSample]:
        """All samples of a cell in one trial of a pair."""
        key = (pair.id, cell.id, trial)
        return [s for s in self.samples if (s.pair, s.id, s.life) == key]

    def rounds(self, pair: CellPair) -> list[list[tuple[EpochSample, EpochSample]]]:
        """Complete rounds of a pair by trial: (reference's sample, system's sample), in order."""
        assert pair.reference is not None
        reference, system = (
            {(s.life, s.round): s for s in self.measured(cell, pair)}
            for cell in (pair.reference, pair.system)
        )
        trials: dict[int, list[tuple[EpochSample, EpochSample]]] = {}
        for key in sorted(reference.keys() & system.keys()):
            trials.setdefault(key[0], []).append((reference[key], system[key]))
        return list(trials.values())


class RunJournal(JournalState):
    """The journal of a run folder, open for appending. Packed journals are unpacked first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        pack.unpack(folder)
        events, samples = folder / "events.jsonl", folder / "samples.jsonl"
        super().__init__(read_events(events), read_samples(samples))
        self._event_file = Journal(events)
        self._sample_file = Journal(samples)

    def record(self, kind: str, **fields: object) -> None:
        """Append an event."""
        event = {"event": kind, **fields}
        self._event_file.append(event)
        self.apply(parse_event(event))

    def fail(self, cell: Cell, failure: Failure) -> None:
        """EpochSample a cell's failure; only the first one counts."""
        self.record("failed", cell=cell.id, **failure.to_json())

    def retry(self, cells: Iterable[str], pairs: Iterable[str]) -> None:
        """Discard failures of cells and measurements of pairs so far; both by id."""
        self.record("retry", cells=sorted(cells), pairs=sorted(pairs))

    def add_sample(self, cell: Cell, sample: EpochSample) -> None:
        """Append one measured epoch."""
        self._sample_file.append(sample.to_json(cell.device == "cuda", bool(cell.evaluate)))
        self.samples.append(sample)

    @staticmethod
    def sample(
        pair: CellPair,
        cell: Cell,
        conditions: EpochSample,
        timing: TimedEpoch,
        report: AuditAnswer,
    ) -> EpochSample:
        """Return one measured epoch: its times and its audit, added to ``conditions``, what was
        measured around it.
        """
        busy, alone = timing["busy"], timing["alone"]
        return replace(
            conditions,
            id=cell.id, system=cell.system, dataset=cell.dataset, model=cell.model, pair=pair.id,
            epoch=report["epoch"], batches=report["batches"], seeds=report["seeds"],
            sampled_edges=report["sampled_edges"], unique_nodes=report["unique_nodes"],
            loss=report["loss"], param_norm=report["param_norm"],
            param_moved=report["param_moved"], counts=read_counts(report["counts"]),
            peak_alloc_bytes=report["peak_alloc_bytes"], peak_rss_bytes=report["peak_rss_bytes"],
            ok=report["ok"],
            wall_s=timing["wall"], outer_s=timing["outer_s"], parent_s=timing["parent_s"],
            sample_time_s=busy.get("sample"), sample_alone_s=alone.get("sample"),
            memory_io_time_s=busy.get("memory_io"), memory_io_alone_s=alone.get("memory_io"),
            compute_time_s=busy.get("compute"), compute_alone_s=alone.get("compute"),
            overlap_s=timing["overlap"], idle_s=timing["idle"],
        )  # fmt: skip

    def close(self) -> None:
        """Close both files."""
        self._event_file.close()
        self._sample_file.close()


def _by_trial(samples: Iterable[EpochSample]) -> list[list[EpochSample]]:
    """Group samples by trial, in the order of their first samples."""
    return list(group_by(samples, lambda sample: (sample.pair, sample.life)).values())
