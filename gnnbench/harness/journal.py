"""What a run knows so far; every change is on the disk before it counts."""

from __future__ import annotations

import hashlib
import secrets
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gnnbench.core.cell import PHASES, Cell
from gnnbench.core.files import Journal, read_journal
from gnnbench.harness.failures import Failure
from gnnbench.harness.plan import Pair
from gnnbench.schema import pack

Record = dict[str, Any]


class Ledger:
    """Reads ``events.jsonl`` and ``samples.jsonl`` of a run folder and appends to them."""

    def __init__(self, folder: Path) -> None:
        self.samples: list[Record] = []
        self.reports: dict[str, Record] = {}  # cell id -> facts, setup_s, check report
        self.profiles: dict[str, Record] = {}  # cell id -> rows of a look inside, or an error
        self.probes: defaultdict[str, list[Record]] = defaultdict(list)  # cell id -> probed events
        self.failures: dict[str, Failure] = {}
        self.retrained: defaultdict[str, list[list[Record]]] = defaultdict(list)  # by cell id
        self.done: dict[str, Record] = {}  # pair id -> why it stopped
        self.rounds_of: dict[str, int] = {}  # pair id -> rounds of each life
        self._secret = ""  # of the run, once something was drawn
        self._lives: defaultdict[str, list[Record]] = defaultdict(list)  # finished, by pair id
        self._good: set[tuple[str, int]] = set()  # (pair id, life) that count
        self._anew: defaultdict[str, int] = defaultdict(int)  # lives before a retry, by pair id
        pack.unpack(folder)
        for event in read_journal(folder / "events.jsonl"):
            self._apply(event)
        self.samples = read_journal(folder / "samples.jsonl")
        self._events = Journal(folder / "events.jsonl")
        self._samples = Journal(folder / "samples.jsonl")

    def _apply(self, event: Mapping[str, Any]) -> None:
        kind = event["event"]
        if kind == "life":
            self._lives[event["pair"]].append(dict(event))
            if not event["void"]:
                self._good.add((event["pair"], event["life"]))
        elif kind == "secret":
            self._secret = event["secret"]
        elif kind == "rounds":
            self.rounds_of[event["pair"]] = event["rounds"]
        elif kind == "report":
            self.reports.setdefault(event["cell"], {}).update(event["report"])
        elif kind == "profile":
            self.profiles[event["cell"]] = event["profile"]
        elif kind == "probed" and "median" in event:  # earlier runs noted the least alone
            self.probes[event["cell"]].append(dict(event))
        elif kind == "retrained":
            self.retrained[event["cell"]] += event["trainings"]
        elif kind == "failed":
            self.failures.setdefault(event["cell"], Failure(event["status"], event["reason"]))
        elif kind == "done":
            self.done[event["pair"]] = dict(event)
        elif kind == "retry":
            for cell in event["cells"]:
                self.failures.pop(cell, None)
                self.profiles.pop(cell, None)
                for looked_at in ("check", "glance"):  # the whole gate again
                    self.reports.get(cell, {}).pop(looked_at, None)
            for pair in event["pairs"]:
                self.done.pop(pair, None)
                self.rounds_of.pop(pair, None)
                self._good = {g for g in self._good if g[0] != pair}
                self._anew[pair] = len(self._lives[pair])

    def record(self, kind: str, **fields: Any) -> None:
        """Append an event."""
        event = {"event": kind, **fields}
        self._events.append(event)
        self._apply(event)

    def drawn(self, purpose: str) -> int:
        """A number of 64 bits, the same for a purpose throughout the run; unknown before it."""
        if not self._secret:
            self.record("secret", secret=secrets.token_hex(16))
        digest = hashlib.sha256(f"{self._secret} {purpose}".encode()).digest()
        return int.from_bytes(digest[:8], "little")

    def fail(self, cell: Cell, failure: Failure) -> None:
        """A cell's fate; the first one stands."""
        self.record("failed", cell=cell.id, **failure.to_json())

    def retry(self, cells: Iterable[str], pairs: Iterable[str]) -> None:
        """Forget the fate of cells and what was measured of pairs so far; both by id."""
        self.record("retry", cells=sorted(cells), pairs=sorted(pairs))

    def counts(self, sample: Record) -> bool:
        """Whether a sample's life was finished and is not void."""
        return (sample["pair"], sample["life"]) in self._good

    def next_life(self, pair: Pair) -> int:
        """A number that no life of this pair has, finished or not."""
        begun = [s["life"] for s in self.samples if s["pair"] == pair.id]
        return max([*begun, *(r["life"] for r in self._lives[pair.id])], default=-1) + 1

    def lives(self, pair: Pair) -> list[Record]:
        """Lives that count, in order: ``life``, ``start_s``, ``seconds``, ``doubt``, ``void``."""
        return [r for r in self._lives[pair.id] if (pair.id, r["life"]) in self._good]

    def doubts_of(self, pair: str) -> list[str]:
        """Doubts of a pair's lives that count, by the pair's id."""
        known = self._lives[pair]
        return [r["doubt"] for r in known if r["doubt"] and (pair, r["life"]) in self._good]

    def void_doubts(self, pair: str) -> list[str]:
        """Why pairs of processes were void and measured again, by the pair's id."""
        return [r["doubt"] for r in self._lives[pair][self._anew[pair] :] if r["void"]]

    def doubts_about(self, cell: Cell) -> list[str]:
        """Doubts of a cell's lives that count, "" of one without; whatever it ran beside."""
        lives = {(s["pair"], s["life"]) for s in self.measured(cell)}
        return [r["doubt"] for pair in self._lives for r in self._lives[pair]
                if (pair, r["life"]) in lives]  # fmt: skip

    def busy(self) -> Record:
        """Other programs that used cores while pairs were measured.

        ``foreign_s`` and ``foreign_cpu_s``: length of the disturbed rounds, and CPU time of others
        in them; ``seconds`` and ``cpu_s``: how long others were looked at, and CPU time by name.
        """
        sums = ("foreign_s", "foreign_cpu_s", "seconds")
        found: Record = {**dict.fromkeys(sums, 0.0), "cpu_s": {}}
        for one in (r["busy"] for lives in self._lives.values() for r in lives if r.get("busy")):
            found |= {key: found[key] + one[key] for key in sums}
            for name, cpu_s in one["cpu_s"].items():
                found["cpu_s"][name] = found["cpu_s"].get(name, 0.0) + cpu_s
        return found

    def excesses(self, pair: Pair) -> dict[int, str]:
        """What differed in this pair's training, by trial, for trials with an excess."""
        known = self._lives[pair.id]
        return {r["life"]: r["excess"] for r in known if r.get("excess")}

    def trainings(self, cell: Cell, length: int) -> list[list[Record]]:
        """Trainings of a cell over different epochs, each of at least ``length`` epochs: of all
        finished trials and of the retrainings."""
        found: dict[tuple[int, ...], list[Record]] = {}
        trials: defaultdict[tuple[str, int], list[Record]] = defaultdict(list)
        finished = {(p, r["life"]) for p, lives in self._lives.items() for r in lives}
        for s in self.samples:
            if s["id"] == cell.id and (s["pair"], s["life"]) in finished:
                trials[(s["pair"], s["life"])].append(s)
        for training in (*trials.values(), *self.retrained[cell.id]):
            if len(training) >= length:
                found.setdefault(tuple(r["epoch"] for r in training[:length]), training[:length])
        return list(found.values())

    def last_life(self, pair: Pair) -> Record | None:
        """The life finished last, void or not; of those since the comparison began anew."""
        finished = self._lives[pair.id][self._anew[pair.id] :]
        return finished[-1] if finished else None

    def void_lives(self, pair: Pair) -> int:
        """How many lives were void since the comparison began anew."""
        return len(self.void_doubts(pair.id))

    def finished(self, pair: Pair) -> bool:
        """Whether nothing is left to measure for this pair."""
        return pair.id in self.done or pair.system.id in self.failures

    def add_sample(
        self,
        pair: Pair,
        cell: Cell,
        where: Mapping[str, Any],
        timing: Mapping[str, Any],
        report: Mapping[str, Any],
    ) -> Record:
        """Append one measured epoch.

        ``where``: life, round, order, warmup, idle_cpu_s ...; ``timing``: a timeline's sweep and
        outer_s; ``report``: the audit's.
        """
        sample: Record = {
            "id": cell.id, "system": cell.system, "dataset": cell.dataset, "model": cell.model,
            "pair": pair.id, **where,
        }  # fmt: skip
        copied = (
            "epoch", "batches", "seeds", "sampled_edges", "unique_nodes", "loss", "param_norm",
            "param_moved", "counts", "peak_alloc_bytes", "peak_rss_bytes", "ok",
        )  # fmt: skip
        sample |= {key: report[key] for key in copied}
        sample |= {"wall_s": timing["wall"], "outer_s": timing["outer_s"]}
        sample |= {"parent_s": timing["parent_s"]}
        sample |= {f"{p}_time_s": timing["busy"].get(p) for p in PHASES}
        sample |= {f"{p}_alone_s": timing["alone"].get(p) for p in PHASES}
        sample |= {"overlap_s": timing["overlap"], "idle_s": timing["idle"]}
        self._samples.append(sample)
        self.samples.append(sample)
        return sample

    def measured(self, cell: Cell, pair: Pair | None = None) -> list[Record]:
        """Samples of a cell without warm-ups, of one pair or of all."""
        return [
            s
            for s in self.samples
            if s["id"] == cell.id
            and not s["warmup"]
            and (pair is None or s["pair"] == pair.id)
            and self.counts(s)
        ]

    def life(self, pair: Pair, cell: Cell, number: int) -> list[Record]:
        """All samples of a cell in one life of a pair, in the order in which they were taken."""
        return [
            s for s in self.samples if (s["pair"], s["id"], s["life"]) == (pair.id, cell.id, number)
        ]

    def warm_ups(self, cell: Cell, pair: Pair | None = None) -> list[Record]:
        """Warm-up samples of a cell, of one pair or of all."""
        return [
            s
            for s in self.samples
            if s["id"] == cell.id
            and s["warmup"]
            and (pair is None or s["pair"] == pair.id)
            and self.counts(s)
        ]

    def rounds(self, pair: Pair) -> list[list[tuple[Record, Record]]]:
        """Complete rounds of a pair by life: (reference's sample, system's sample), in order."""
        assert pair.reference is not None
        sides: list[dict[tuple[int, int], Record]] = [
            {(s["life"], s["round"]): s for s in self.measured(cell, pair)}
            for cell in (pair.reference, pair.system)
        ]
        found: dict[int, list[tuple[Record, Record]]] = {}
        for key in sorted(sides[0].keys() & sides[1].keys()):
            found.setdefault(key[0], []).append((sides[0][key], sides[1][key]))
        return list(found.values())

    def by_life(self, cell: Cell, pair: Pair | None = None) -> list[list[Record]]:
        """Measured samples of a cell, life by life."""
        found: dict[tuple[str, int], list[Record]] = {}
        for s in self.measured(cell, pair):
            found.setdefault((s["pair"], s["life"]), []).append(s)
        return list(found.values())

    def close(self) -> None:
        """Close both files."""
        self._events.close()
        self._samples.close()
