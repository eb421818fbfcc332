"""Measures false alarms and power of certificates: ``python -m gnnbench.certification.experiment``.

Draws the properties that leave something to chance of correct samplers with different seeds, and
those of planted faults around the smallest bias that a certificate states. Both use the small plan
``SMALL``: levels do not depend on the number of draws, and the stated bias is computed for it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import torch
from scipy.stats import beta
from torch import Tensor

from gnnbench.certification import behaviour, distribution, independence
from gnnbench.certification.plan import QUICK, Plan
from gnnbench.certification.planted import PlantedSubject
from gnnbench.certification.record import FAILS, Entry
from gnnbench.certification.subject import Drawer, Request, Subject, WalkDraws, WorkerDraws
from gnnbench.certification.subjects import subject_of
from gnnbench.core.files import write_json

SMALL = replace(QUICK, copies=32, calls=24, hub_copies=2, hub_calls=6, pairs=200, epochs=4)
FILE = Path("results", "certificates", "experiment", "false_alarms_and_power.json")
SHARES = (0.5, 1.0, 1.5)  # of the stated bias
CORRECT = ("planted", "hop-by-hop")
# The fault by which a property's bias is planted; sizes are odds, tilts or shares of copies.
PLANTED = {
    "subsets": "first_edge", "inclusion": "first_half", "scores": "tilt",
    "replacement": "first_edge", "weighted": "first_edge", "successive": "first_edge",
    "walks": "walks", "rows": "rows", "batches": "batches", "epochs": "epochs", "hops": "hops",
    "workers": "workers", "worker_epochs": "worker_epochs", "time": "uneven_time",
}  # fmt: skip
COPIES = ("rows", "batches", "epochs", "hops", "workers", "worker_epochs")


class Reseeded(Subject):
    """A subject with other seeds, so that its certificates are independent of each other."""

    def __init__(self, subject: Subject, base: int) -> None:
        self._subject, self._base = subject, base
        self.name, self.device = subject.name, subject.device
        self.options, self.packages = subject.options, subject.packages

    def _moved(self, request: Request) -> Request:
        return replace(request, seed=self._base + (request.seed or 0))

    def picks(self, law: str) -> tuple[str, ...]:
        """Those of the subject."""
        return self._subject.picks(law)

    def build(self, request: Request) -> Drawer:
        """Build it with another seed."""
        return self._subject.build(self._moved(request))

    def walks(self) -> WalkDraws | str:
        """Those of the subject with another seed."""
        made = self._subject.walks()
        if isinstance(made, str):
            return made
        return lambda graph, length, seed: made(graph, length, seed + self._base)

    def workers(self, request: Request, seeds: Tensor) -> WorkerDraws | str:
        """Those of the subject with another seed."""
        return self._subject.workers(self._moved(request), seeds)


def chance_entries(subject: Subject, plan: Plan, wanted: str = "") -> Iterator[Entry]:
    """The entries that leave something to chance; only ``wanted`` if it is not empty."""
    alone: Mapping[str, Callable[[Subject, Plan], Entry]] = {
        "subsets": distribution.subsets, "inclusion": distribution.inclusion,
        "scores": distribution.scores, "replacement": distribution.replacement,
        "weighted": distribution.weighted, "successive": distribution.successive,
        "walks": distribution.walks, "time": behaviour.time_constraint,
    }  # fmt: skip
    for name, test in alone.items():
        if wanted in ("", name):
            yield test(subject, plan)
    if wanted in ("", "workers", "worker_epochs"):
        yield from (e for e in independence.of_workers(subject, plan) if wanted in ("", e.name))
    if wanted in ("", "rows", "batches", "epochs", "hops"):
        yield from (e for e in independence.within_process(subject, plan) if wanted in ("", e.name))


def upper_limit(successes: int, trials: int, confidence: float = 0.95) -> float:
    """Upper confidence limit of a probability (Clopper and Pearson, Biometrika 26, 1934)."""
    return (
        1.0
        if successes == trials
        else float(beta.ppf(confidence, successes + 1, trials - successes))
    )


def false_alarms(certificates: int) -> dict[str, object]:
    """Certify correct samplers in turn; returns counts and the upper confidence limit."""
    alarms: list[str] = []
    tests = 0
    for number in range(certificates):
        base = 1000 * (number + 1)
        name = CORRECT[number % len(CORRECT)]
        subject: Subject = PlantedSubject(base=base)
        if name != "planted":
            subject = Reseeded(subject_of(name, "cpu", {}), base)
        plan = replace(SMALL, workers=name == "planted")
        entries = list(chance_entries(subject, plan))
        tests += sum(entry.level > 0 for entry in entries)
        failed = [f"{name} {base}: {entry.name}" for entry in entries if entry.verdict == FAILS]
        alarms += failed[:1]
        print(f"certificate {number + 1}: {failed or 'passes'}", file=sys.stderr, flush=True)
    return {
        "certificates": certificates, "samplers": list(CORRECT), "tests": tests,
        "alarms": len(alarms), "failed": alarms,
        "upper_95": upper_limit(len(alarms), certificates),
    }  # fmt: skip


def power(runs: int) -> list[dict[str, object]]:
    """Detections of planted faults at shares of the bias that the certificate states."""
    rows: list[dict[str, object]] = []
    for name, fault in PLANTED.items():
        (entry,) = chance_entries(PlantedSubject(base=7), SMALL, name)
        assert entry.bias is not None
        for share in SHARES:
            size = share * entry.bias if name in COPIES else 1 + share * (entry.bias - 1)
            planted = min((size - 1) / 2, 1.0) if fault == "tilt" else size
            detected = 0
            for run in range(runs):
                subject = PlantedSubject(fault, planted, base=10_000 + 1000 * run)
                (drawn,) = chance_entries(subject, SMALL, name)
                detected += drawn.verdict == FAILS
            rows.append(
                {"property": name, "bias_of": entry.bias_of, "stated": entry.bias, "share": share,
                 "planted": size, "draws": entry.draws, "runs": runs, "detected": detected}
            )  # fmt: skip
            print(rows[-1], file=sys.stderr, flush=True)
    return rows


def main() -> None:
    """Run both experiments and write ``FILE``; takes about an hour on one core."""
    parser = argparse.ArgumentParser(description="Measure false alarms and power of certificates.")
    parser.add_argument("--certificates", type=int, default=200, help="certificates to draw")
    parser.add_argument("--runs", type=int, default=20, help="samplers of each planted size")
    parser.add_argument("--out", type=Path, default=FILE, help="JSON file")
    given = parser.parse_args()
    torch.set_num_threads(1)
    result = {"false_alarms": false_alarms(given.certificates), "power": power(given.runs)}
    given.out.parent.mkdir(parents=True, exist_ok=True)
    write_json(given.out, result)


if __name__ == "__main__":
    main()
