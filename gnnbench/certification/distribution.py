"""Distribution of picks: uniform, with replacement, by weight, and of random walks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np
import torch

from gnnbench.certification.inputs import DEGREES, HUBS, graph_of, mixed, stars, trees
from gnnbench.certification.laws import trace_law, visit_law
from gnnbench.certification.plan import EXACT_LEVEL, Plan
from gnnbench.certification.record import ABSENT, ALWAYS, FAILS, PASSES, Entry
from gnnbench.certification.rows import (
    Table,
    hops_of,
    outcome_tables,
    place_tables,
    star_requests,
)
from gnnbench.certification.snippets import table_snippet
from gnnbench.certification.subject import SUCCESSIVE, Request, Subject, law_of
from gnnbench.core.minibatch import Hop
from gnnbench.validation.inclusion import Inclusion
from gnnbench.validation.law import BY_WEIGHT, WALK, WITH, WITHOUT
from gnnbench.validation.multinomial import detectable_divergence, log_evidence, mean_evidence

WEIGHTS = ((1.0, 2.0, 3.0, 4.0), (8.0, 1.0, 1.0, 1.0, 1.0, 0.0), (0.015625, 1.0, 1.0))
Outcome = TypeVar("Outcome", bound=tuple[object, ...])
FIRST_EDGE = "odds of a row's first edge"
FIRST_HALF = "odds of the first half of a row"


def subsets(subject: Subject, plan: Plan) -> Entry:
    """All subsets of small rows are equally likely, in the first and the second hop.

    Every pair of rows of 24 and 48 edges is included. Exact multinomial evidence.
    """
    given, tree = stars(DEGREES, plan.copies), trees(6, plan.copies)

    def draw() -> list[Table]:
        tables: list[Table] = []
        for request in star_requests(subject, WITHOUT, given, (1, 2, 3, 5)):
            tables += outcome_tables(subject, request, given.seeds, plan.calls)
        for pick in subject.picks(WITHOUT):
            request = Request(tree.graph, (1, 2), WITHOUT, pick, seed=9)
            tables += outcome_tables(subject, request, tree.seeds, plan.calls, hop=1)
        return tables

    return _judged("subsets", subject, draw, FIRST_EDGE)


def inclusion(subject: Subject, plan: Plan) -> Entry:
    """Every place of a row is picked equally often, in rows of 6 to 48 and of thousands of edges.

    The evidence covers picks without replacement; see ``gnnbench.validation.multinomial``.
    """
    small, hubs = stars((6, 9, 12, 24, 48), plan.copies), stars(HUBS, plan.hub_copies)

    def draw() -> list[Table]:
        tables: list[Table] = []
        for request in star_requests(subject, WITHOUT, small, (5, 10)):
            tables += place_tables(subject, request, small.seeds, plan.calls // 2)
        for request in star_requests(subject, WITHOUT, hubs, (5, 40, 600)):
            tables += place_tables(subject, request, hubs.seeds, plan.hub_calls)
        return tables

    return _judged("inclusion", subject, draw, FIRST_HALF)


def scores(subject: Subject, plan: Plan) -> Entry:
    """Picks do not depend on place, degree, id or earlier picks, in a graph of skewed degrees.

    The gate's law test (``gnnbench.validation.inclusion``), two hops.
    """
    given = mixed()
    pick = subject.picks(WITHOUT)[0]
    request = Request(given.graph, (5, 3), WITHOUT, pick, seed=11)
    test = Inclusion(given.graph, law_of(request))
    try:
        for hops in hops_of(subject, request, given.seeds, plan.calls // 2):
            for number, hop in enumerate(hops, start=1):
                test.add(*_rows(hop), hop=number)
    except Exception as error:
        return Entry("scores", FAILS, reason=_raised(error))
    evidence, rows = test.log_evidence, test.rows
    bias = 1 + 2 * test.smallest_tilt(EXACT_LEVEL)
    verdict = FAILS if evidence >= -math.log(EXACT_LEVEL) else PASSES
    return Entry(
        "scores", verdict, ALWAYS, test.fault if verdict == FAILS else "", EXACT_LEVEL, rows, 8,
        bias, "odds of a row's first edge against its last",
    )  # fmt: skip


def _rows(hop: Hop) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Destinations, numbers of picks and picks of a hop, grouped by destination."""
    dst = np.unique(hop.dst)
    order = np.argsort(hop.edge_dst, kind="stable")
    counts = np.bincount(np.searchsorted(dst, hop.edge_dst), minlength=dst.size)
    return torch.from_numpy(dst), torch.from_numpy(counts), torch.from_numpy(hop.edge_src[order])


def replacement(subject: Subject, plan: Plan) -> Entry:
    """Picks with replacement are independent and equally likely: all multisets of small rows."""
    given = stars(range(1, 9), plan.copies)

    def draw() -> list[Table]:
        tables: list[Table] = []
        for request in star_requests(subject, WITH, given, (1, 2, 3)):
            tables += outcome_tables(subject, request, given.seeds, plan.calls // 2)
        return tables

    return _judged("replacement", subject, draw, FIRST_EDGE, WITH)


def weighted(subject: Subject, plan: Plan) -> Entry:
    """Picks with replacement have probabilities in proportion to the weights, and none is 0."""
    return _weighted("weighted", subject, plan, BY_WEIGHT)


def successive(subject: Subject, plan: Plan) -> Entry:
    """Picks without replacement are taken one after the other in proportion to the weights left."""
    return _weighted("successive", subject, plan, SUCCESSIVE)


def _weighted(name: str, subject: Subject, plan: Plan, law: str) -> Entry:
    def draw() -> list[Table]:
        tables: list[Table] = []
        for weights in WEIGHTS:
            given = stars((len(weights),), 4 * plan.copies, weights=weights)
            for request in star_requests(subject, law, given, (1, 2, 3)):
                tables += outcome_tables(subject, request, given.seeds, plan.calls // 4)
        return tables

    return _judged(name, subject, draw, FIRST_EDGE, law)


def walks(subject: Subject, plan: Plan) -> Entry:
    """Random walks: all traces, or the visits of all walks, of a graph with rows of 1 to 3 edges.

    Visits are those of ``random_walk`` of gnnbench: most visited nodes with their numbers.
    """
    rows = [[1, 2], [2, 3, 0], [0, 3], [1], [0, 1, 2, 3]]
    graph = graph_of(rows, "walks")
    by_trace = subject.walks()
    logs: list[float] = []
    draws = 0
    sizes: list[int] = []
    try:
        if not isinstance(by_trace, str):
            draw = by_trace(graph, 3, 3)
            nodes = torch.arange(5).repeat_interleave(plan.copies)
            seen = torch.cat([draw(nodes) for _ in range(plan.calls // 2)]).tolist()
            for node in range(5):
                mine = [tuple(trace) for trace in seen if trace[0] == node]
                logs.append(_evidence(mine, trace_law(graph, node, 3)))
                draws, sizes = draws + len(mine), [*sizes, len(mine)]
        elif picks := subject.picks(WALK):
            logs, draws = _visits(subject, picks[0], plan)
        else:
            return Entry("walks", ABSENT, f"law:{WALK}", by_trace or subject.reason(WALK))
    except Exception as error:
        return Entry("walks", FAILS, f"law:{WALK}", _raised(error))
    evidence = mean_evidence(logs)
    verdict = FAILS if evidence >= -math.log(EXACT_LEVEL) else PASSES
    reason = "" if verdict == PASSES else f"the walks are not random (evidence e^{evidence:.0f})"
    needed = detectable_divergence(12, max(draws // len(logs), 1), EXACT_LEVEL / len(logs))
    return Entry(
        "walks", verdict, f"law:{WALK}", reason, EXACT_LEVEL, draws, len(logs),
        _step_odds(needed), "odds of a step to the first of two neighbours",
    )  # fmt: skip


def _step_odds(needed: float) -> float:
    """Odds of one of two outcomes whose divergence from one half is ``needed``."""
    low, high = 1.0, 1e6
    for _ in range(60):
        middle = math.sqrt(low * high)
        q = middle / (1 + middle)
        divergence = q * math.log(2 * q) + (1 - q) * math.log(max(2 * (1 - q), 1e-300))
        low, high = (middle, high) if divergence < needed else (low, middle)
    return high


def _visits(subject: Subject, pick: str, plan: Plan) -> tuple[list[float], int]:
    """Evidence against the visits of gnnbench's default walks (4 of 3 steps, restart 0.5).

    Copies of one small component are sampled at once; no component has more nodes than the fanout.
    """
    component = [[1, 2], [2, 0], [0, 1]]
    copies = 4 * plan.copies
    rows = [[3 * c + i for i in row] for c in range(copies) for row in component]
    graph = graph_of(rows, "walks")
    law = visit_law(graph_of(component, "walk"), 0, 4, 3, 0.5)
    seeds = torch.arange(0, 3 * copies, 3)
    request = Request(graph, (3,), WALK, pick, seed=5)
    seen: list[tuple[tuple[int, int], ...]] = []
    for (hop,) in hops_of(subject, request, seeds, plan.calls // 4):
        assert hop.visits is not None
        by_seed: dict[int, list[tuple[int, int]]] = {}
        for dst, src, times in zip(hop.edge_dst, hop.edge_src, hop.visits, strict=True):
            by_seed.setdefault(int(dst), []).append((int(src) - int(dst), int(times)))
        seen += [tuple(sorted(by_seed.get(int(seed), []))) for seed in seeds]
    return [_evidence(seen, law)], len(seen)


def _evidence(seen: Sequence[Outcome], law: Mapping[Outcome, float]) -> float:
    """Evidence of outcomes against their law, with one category for all others."""
    number = {outcome: at for at, outcome in enumerate(law)}
    counts = np.zeros(len(law) + 1, dtype=np.int64)
    for outcome in seen:
        counts[number.get(outcome, len(law))] += 1
    return log_evidence(counts, np.array([*law.values(), 0.0]))


def _judged(
    name: str,
    subject: Subject,
    draw: Callable[[], list[Table]],
    bias_of: str,
    law: str = WITHOUT,
) -> Entry:
    """The entry of a property whose evidence is the mean of that of its tables."""
    scope = f"law:{law}"
    if not subject.picks(law):
        return Entry(name, ABSENT, scope, subject.reason(law))
    try:
        tables = draw()
    except Exception as error:  # of a sampler of others
        return Entry(name, FAILS, scope, _raised(error))
    logs = [table.log_evidence for table in tables]
    level = EXACT_LEVEL / max(len(tables), 1)
    bias = min((table.smallest_odds(level) for table in tables), default=math.inf)
    draws = sum(table.draws for table in tables)
    verdict, reason, snippet = PASSES, "", ""
    if mean_evidence(logs) >= -math.log(EXACT_LEVEL):
        # Each of several tables may be below its own level where their mean is above it.
        least = min(-math.log(level), max(logs))
        wrong = [t for t, log in zip(tables, logs, strict=True) if log >= least]
        worst = min(wrong, key=lambda t: (t.hop, t.degree, t.fanout))
        verdict, reason = FAILS, text_of(worst, subject)
        snippet = table_snippet(subject, worst)
    return Entry(
        name, verdict, scope, reason, EXACT_LEVEL, draws, len(tables),
        bias if math.isfinite(bias) else None, bias_of, snippet,
    )  # fmt: skip


def text_of(table: Table, subject: Subject) -> str:
    """Say which counts of a table differ most from what its law expects."""
    if table.known is not None and table.counts[-1]:
        wrong = f"{table.counts[-1]:,} of {table.draws:,} rows have picks that the law excludes"
        return f"{wrong} (degree {table.degree}, fanout {table.fanout}, hop {table.hop + 1})"
    expected = table.law * table.counts.sum()
    deviation = (table.counts - expected) / np.sqrt(np.maximum(expected, 1e-9))
    at = int(np.abs(deviation).argmax())
    if table.known is None:
        part = "place" if table.law.size == table.degree else f"part {BINS_TEXT}"
        what = f"{part} {at} of rows of degree {table.degree}"
    else:
        what = f"places {table.known.places(at)} of rows of degree {table.degree}"
    is_left_out = table.known is None and 2 * table.fanout > table.degree
    drawn = "left out" if is_left_out else "drawn"
    pick = f", pick {table.request.pick}" if len(subject.picks(table.request.law)) > 1 else ""
    return (
        f"{what}, fanout {table.fanout}, hop {table.hop + 1}{pick}: {drawn} {table.counts[at]:,}"
        f" times where {expected[at]:,.0f} are expected ({table.draws:,} rows)"
    )


BINS_TEXT = "of 32,"


def _raised(error: Exception) -> str:
    text = next(iter(str(error).splitlines()), "")
    return f"it raised {type(error).__name__}: {text}"[:300]
