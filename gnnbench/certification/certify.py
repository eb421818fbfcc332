"""Draws a certificate: every property of a sampler, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from gnnbench.certification import behaviour, distribution, independence
from gnnbench.certification.inputs import structure_inputs
from gnnbench.certification.plan import Plan
from gnnbench.certification.record import ABSENT, ALWAYS, FAILS, PASSES, Certificate, Entry
from gnnbench.certification.snippets import fault_snippet
from gnnbench.certification.structure import (
    ALL_FANOUTS,
    EVERY,
    FANOUTS,
    PROPERTIES,
    READABLE,
    Violation,
    all_neighbours,
    find_faults,
)
from gnnbench.certification.subject import LAWS, Subject
from gnnbench.validation.law import WALK, WITHOUT

Progress = Callable[[str], None]
OTHER_LAWS = "structure is tested without replacement; the counts of other laws in their tables"


@dataclass(frozen=True)
class Part:
    """Properties that are tested together: their names, and what yields their entries."""

    names: tuple[str, ...]
    draw: Callable[[Subject, Plan], Iterator[Entry]]


def certify(subject: Subject, plan: Plan, progress: Progress = lambda name: None) -> Certificate:
    """Test every property of a subject.

    ``progress`` is called with the name of each entry once it is decided. An error of the sampler
    is a failing entry. Raises ``GnnbenchError`` if it cannot be built at all.
    """
    entries: list[Entry] = []
    for part in PARTS:
        for entry in part.draw(subject, plan):
            entries.append(entry)
            progress(entry.name)
    return certificate_of(subject, plan, entries)


def certificate_of(subject: Subject, plan: Plan, entries: list[Entry]) -> Certificate:
    """The certificate of a subject with these entries."""
    law = next((law for law in LAWS if subject.picks(law)), "")
    return Certificate(
        subject.name, subject.version, subject.device, dict(subject.options), law,
        dict(subject.packages), plan.quick, torch.get_num_threads(), subject.stage,
        dict(subject.settings), entries,
    )  # fmt: skip


def structure(subject: Subject, plan: Plan) -> Iterator[Entry]:
    """Structural properties with int64 ids."""
    if _has_no_structure(subject):
        yield from (Entry(name, ABSENT, ALWAYS, OTHER_LAWS) for name in PROPERTIES)
        return
    refused = all_neighbours(subject)
    fanouts = (*FANOUTS, *(() if refused else ALL_FANOUTS))
    inputs = structure_inputs(torch.int64, wide=False)
    faults, batches = find_faults(subject, inputs, fanouts)
    for name in PROPERTIES:
        if name == EVERY and refused:
            yield Entry(name, ABSENT, ALWAYS, refused)
            continue
        yield _entry(name, subject, faults.get(name), batches)


def int32_ids(subject: Subject, plan: Plan) -> Iterator[Entry]:
    """The same properties with int32 ids."""
    if _has_no_structure(subject):
        return
    fanouts = (*FANOUTS, *(() if all_neighbours(subject) else ALL_FANOUTS))
    faults, batches = find_faults(subject, structure_inputs(torch.int32, wide=False), fanouts)
    yield _entry("int32_ids", subject, next(iter(faults.values()), None), batches)


def wide_ids(subject: Subject, plan: Plan) -> Iterator[Entry]:
    """The same properties with ids above 2^24."""
    if _has_no_structure(subject):
        return
    if not plan.wide:
        yield Entry("wide_ids", ABSENT, ALWAYS, "not tested in a quick certificate")
        return
    wide = structure_inputs(torch.int64, wide=True)[-1:]
    faults, batches = find_faults(subject, wide, ((3,), (2, 2)))
    yield _entry("wide_ids", subject, next(iter(faults.values()), None), batches)


def _has_no_structure(subject: Subject) -> bool:
    return not subject.picks(WITHOUT)


def _scores(subject: Subject, plan: Plan) -> Iterator[Entry]:
    if subject.picks(WITHOUT):
        yield distribution.scores(subject, plan)


def _determinism(subject: Subject, plan: Plan) -> Iterator[Entry]:
    if any(subject.picks(law) for law in LAWS if law != WALK):
        yield from behaviour.determinism(subject)


def _one(name: str, test: Callable[[Subject, Plan], Entry]) -> Part:
    return Part((name,), lambda subject, plan: iter([test(subject, plan)]))


PARTS = (
    Part(PROPERTIES, structure),
    Part(("int32_ids",), int32_ids),
    Part(("wide_ids",), wide_ids),
    _one("subsets", distribution.subsets),
    _one("inclusion", distribution.inclusion),
    Part(("scores",), _scores),
    _one("replacement", distribution.replacement),
    _one("weighted", distribution.weighted),
    _one("successive", distribution.successive),
    _one("walks", distribution.walks),
    Part(("rows", "batches", "epochs", "hops"), independence.within_process),
    Part(("workers", "worker_epochs"), independence.of_workers),
    _one("ranks", independence.of_ranks),
    Part(("seed", "new_seed"), _determinism),
    _one("whole_graph", lambda subject, plan: behaviour.whole_graph(subject)),
    _one("time", behaviour.time_constraint),
)


def _entry(name: str, subject: Subject, violation: Violation | None, batches: int) -> Entry:
    if violation is None:
        return Entry(name, PASSES, draws=batches)
    request, calls = violation.request, violation.calls
    where = f"{request.graph.name}, fanouts {list(request.fanouts)}, call {calls}"
    snippet = "" if name == READABLE and calls > 1 else fault_snippet(subject, violation)
    return Entry(name, FAILS, ALWAYS, f"{violation.what} ({where})", draws=batches, snippet=snippet)
