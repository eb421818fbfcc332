"""Draws a certificate: every property of a sampler, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator

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


def certify(subject: Subject, plan: Plan, progress: Progress = lambda name: None) -> Certificate:
    """Test every property of a subject.

    ``progress`` is called with the name of each entry once it is decided. An error of the sampler
    is a failing entry. Raises ``GnnbenchError`` if it cannot be built at all.
    """
    law = next((law for law in LAWS if subject.picks(law)), "")
    entries: list[Entry] = []
    for entry in _entries(subject, plan):
        entries.append(entry)
        progress(entry.name)
    return Certificate(
        subject.name, subject.version, subject.device, dict(subject.options), law,
        dict(subject.packages), plan.quick, torch.get_num_threads(), subject.stage,
        dict(subject.settings), entries,
    )  # fmt: skip


def _entries(subject: Subject, plan: Plan) -> Iterator[Entry]:
    yield from structure(subject, plan)
    yield distribution.subsets(subject, plan)
    yield distribution.inclusion(subject, plan)
    if subject.picks(WITHOUT):
        yield distribution.scores(subject, plan)
    yield distribution.replacement(subject, plan)
    yield distribution.weighted(subject, plan)
    yield distribution.successive(subject, plan)
    yield distribution.walks(subject, plan)
    yield from independence.within_process(subject, plan)
    yield from independence.of_workers(subject, plan)
    yield independence.of_ranks(subject, plan)
    if any(subject.picks(law) for law in LAWS if law != WALK):
        yield from behaviour.determinism(subject)
    yield behaviour.whole_graph(subject)
    yield behaviour.time_constraint(subject, plan)


def structure(subject: Subject, plan: Plan) -> Iterator[Entry]:
    """Structural properties with int64 ids, with int32 ids, and with ids above 2^24."""
    if not subject.picks(WITHOUT):
        reason = "structure is tested without replacement; the counts of other laws in their tables"
        yield from (Entry(name, ABSENT, ALWAYS, reason) for name in PROPERTIES)
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
    faults, batches = find_faults(subject, structure_inputs(torch.int32, wide=False), fanouts)
    yield _entry("int32_ids", subject, next(iter(faults.values()), None), batches)
    if not plan.wide:
        yield Entry("wide_ids", ABSENT, ALWAYS, "not tested in a quick certificate")
        return
    wide = structure_inputs(torch.int64, wide=True)[-1:]
    faults, batches = find_faults(subject, wide, ((3,), (2, 2)))
    yield _entry("wide_ids", subject, next(iter(faults.values()), None), batches)


def _entry(name: str, subject: Subject, violation: Violation | None, batches: int) -> Entry:
    if violation is None:
        return Entry(name, PASSES, draws=batches)
    request, calls = violation.request, violation.calls
    where = f"{request.graph.name}, fanouts {list(request.fanouts)}, call {calls}"
    snippet = "" if name == READABLE and calls > 1 else fault_snippet(subject, violation)
    return Entry(name, FAILS, ALWAYS, f"{violation.what} ({where})", draws=batches, snippet=snippet)
