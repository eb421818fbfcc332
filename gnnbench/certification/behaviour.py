"""Determinism by seed, equality with the whole graph, and time constraints."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from gnnbench.certification.inputs import mixed, stars
from gnnbench.certification.laws import outcomes
from gnnbench.certification.plan import EXACT_LEVEL, Plan
from gnnbench.certification.record import ABSENT, ALWAYS, FAILS, PASSES, TIME, Entry
from gnnbench.certification.rows import Table
from gnnbench.certification.structure import all_neighbours
from gnnbench.certification.subject import LAWS, Ids, Request, Subject
from gnnbench.core.fanouts import ALL
from gnnbench.core.minibatch import Block
from gnnbench.core.units import plural
from gnnbench.datasets.graph import Graph
from gnnbench.models import reference
from gnnbench.models.kinds import MODELS
from gnnbench.models.weights import layer_dims, make_weights
from gnnbench.validation.hops import digest
from gnnbench.validation.law import WALK, WITHOUT
from gnnbench.validation.multinomial import mean_evidence

BATCHES = 3
TOLERANCE = 1e-9  # relative, of float64 sums in another order
WIDTHS = (7, 16, 5)  # input rows, hidden, output
TIMED_DEGREE = 6


def determinism(subject: Subject) -> list[Entry]:
    """Equal seeds give equal batches; another seed gives others.

    Batches of 100 seeds in a graph of skewed degrees; by chance they are equal with a probability
    below 1e-50.
    """
    law = next(law for law in LAWS if subject.picks(law) and law != WALK)
    given = mixed()
    graph = given.graph
    if "weight" in law:
        weights = torch.ones(graph.num_edges)
        graph = Graph(**{**graph.__dict__, "weights": weights})

    def digests(seed: int) -> list[str]:
        request = Request(graph, (3, 2), law, subject.picks(law)[0], seed)
        drawer = subject.build(request)
        try:
            hops = [drawer.draw(given.seeds, 0, number).hops() for number in range(BATCHES)]
        finally:
            drawer.close()
        return [digest([batch]) for batch in hops]

    try:
        first, second, other = digests(7), digests(7), digests(8)
    except Exception as error:
        return [
            Entry(name, FAILS, ALWAYS, f"it raised {error}"[:200]) for name in ("seed", "new_seed")
        ]
    same, new = first == second, all(a != b for a, b in zip(first, other, strict=True))
    threads = plural(torch.get_num_threads(), "thread")
    fault = "" if same else f"equal seeds give different batches ({threads})"
    program = "" if same else subject.pair_program("seed")
    again = "" if new else "another seed gives equal batches"
    draws = 2 * BATCHES
    return [
        Entry("seed", FAILS if fault else PASSES, "seed", fault, draws=draws, snippet=program),
        Entry("new_seed", FAILS if again else PASSES, ALWAYS, again, draws=draws),
    ]


def whole_graph(subject: Subject) -> Entry:
    """With all neighbours, four models give on the blocks what they give on the whole graph.

    Both are computed in float64 by ``gnnbench.models.reference``, with equal weights and rows.
    """
    if reason := all_neighbours(subject):
        return Entry("whole_graph", ABSENT, ALWAYS, reason)
    given = mixed()
    graph, layers = given.graph, 2
    request = Request(graph, (ALL,) * layers, WITHOUT, subject.picks(WITHOUT)[0])
    random = torch.Generator().manual_seed(5)
    rows = torch.randn(graph.num_nodes, WIDTHS[0], generator=random, dtype=torch.float64)
    every = Block(
        graph.indptr.int(), graph.indices.int(), torch.arange(graph.num_nodes), graph.num_nodes
    )
    worst, model_name = 0.0, ""
    try:
        drawer = subject.build(request)
        batch = drawer.draw(given.seeds, 0, 0)
        blocks = [block.mapped(Tensor.cpu) for block in batch.blocks]
        inputs = batch.input_nodes.cpu().long()
        seeds = drawer.seed_order(given.seeds, batch)
        drawer.close()
        for name, kind in MODELS.items():
            if kind.form == "convolve" or kind.symmetric:
                continue  # for the visits of random walks, and by the degrees within a block
            dims = layer_dims(*WIDTHS, layers)
            weights = [w.mapped(Tensor.double) for w in make_weights(dims, kind, 0)]
            right = reference.forward(name, weights, [every] * layers, rows)[seeds]
            on_blocks = reference.forward(name, weights, blocks, rows[inputs])
            error = float((on_blocks - right).norm() / right.norm())
            if not error <= worst:
                worst, model_name = error, name
    except Exception as error:
        return Entry("whole_graph", FAILS, ALWAYS, f"it raised {error}"[:200])
    if worst <= TOLERANCE:
        return Entry("whole_graph", PASSES, draws=1)
    return Entry(
        "whole_graph", FAILS, ALWAYS,
        f"{model_name} on the blocks is off by {worst:.2g} of its values on the whole graph",
        draws=1,
    )  # fmt: skip


def time_constraint(subject: Subject, plan: Plan) -> Entry:
    """No edge is later than its seed, and the edges that are early enough are equally likely.

    Rows of six edges with times 0 to 5; seeds have times -1 to 5; fanouts 2 and 3, two hops.
    """
    made = subject.temporal()
    if isinstance(made, str):
        return Entry("time", ABSENT, TIME, made)
    given = stars((TIMED_DEGREE,), 7 * plan.copies)
    graph = given.graph
    times = np.tile(np.arange(TIMED_DEGREE), given.seeds.numel()).astype(np.int64)
    seed_times = torch.arange(given.seeds.numel()) % 7 - 1
    tables: dict[tuple[int, int], Table] = {}
    draws = 0
    try:
        for fanout in (1, 2, 3):
            request = Request(graph, (fanout,), WITHOUT, "time", seed=41)
            draw = made(graph, times, (fanout, 2), given.seeds, seed_times)
            for _ in range(max(plan.calls // 8, 2)):
                drawn = draw()
                late = times[drawn.position] > seed_times.numpy()[drawn.seed]
                if late.any():
                    text = f"{int(late.sum())} of {late.size} edges are later than their seed"
                    return Entry("time", FAILS, TIME, text, draws=draws)
                draws += given.seeds.numel()
                places = drawn.position % TIMED_DEGREE
                codes = np.bincount(drawn.seed, 2.0**places, given.seeds.numel()).astype(np.int64)
                _count(tables, request, fanout, codes, seed_times.numpy() + 1)
    except Exception as error:
        return Entry("time", FAILS, TIME, f"it raised {type(error).__name__}: {error}"[:200])
    logs = [table.log_evidence for table in tables.values()]
    level = EXACT_LEVEL / len(logs)
    fails = mean_evidence(logs) >= -math.log(EXACT_LEVEL)
    worst = max(tables.values(), key=lambda t: t.log_evidence)
    reason = (
        f"of {worst.degree} early edges {worst.fanout} are picked unevenly: {worst.counts.tolist()}"
        f" where {(worst.law * worst.counts.sum()).round(1).tolist()} are expected"
        if fails
        else ""
    )
    return Entry(
        "time", FAILS if fails else PASSES, TIME, reason, EXACT_LEVEL, draws, len(logs),
        min(table.smallest_odds(level) for table in tables.values()), "odds of a row's first edge",
    )  # fmt: skip


def _count(
    tables: dict[tuple[int, int], Table],
    request: Request,
    fanout: int,
    codes: Ids,
    early: Ids,
) -> None:
    """Add the rows of one batch to the table of their number of early edges."""
    for number in range(TIMED_DEGREE + 1):
        rows = codes[early == number]
        known = outcomes(WITHOUT, number, fanout) if number else outcomes(WITHOUT, 1, 1)
        zeros = np.zeros(known.codes.size + 1, dtype=np.int64)
        table = tables.setdefault(
            (number, fanout),
            Table(request, number, fanout, 0, known.law_with_rest, known, 0, zeros),
        )
        counted = known.count(rows if number else rows + 1)
        table.counts, table.draws = table.counts + counted, table.draws + rows.size
