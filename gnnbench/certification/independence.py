"""Independence of picks: of rows, hops, batches, epochs, worker processes and ranks."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from gnnbench.certification.inputs import Input, stars, trees
from gnnbench.certification.plan import PAIR_LEVEL, Plan
from gnnbench.certification.record import ABSENT, ALWAYS, FAILS, PASSES, RANKS, WORKERS, Entry
from gnnbench.certification.snippets import pair_snippet
from gnnbench.certification.subject import Ids, Request, Subject
from gnnbench.core.minibatch import Hop
from gnnbench.datasets.graph import Graph
from gnnbench.validation.law import WITH, WITHOUT
from gnnbench.validation.multinomial import detectable_copies, independence_p

DEGREE = 6  # of the rows whose single picks are paired
COPIED = "share of picks copied from the other draw"
RANK_TIMEOUT_S = 120

Pairs = list[tuple[Ids, Ids]]


def any_law(subject: Subject) -> str:
    """The law by which independence is tested: uniform if there is one, "" if there is none."""
    return next((law for law in (WITHOUT, WITH) if subject.picks(law)), "")


def single_picks(graph: Graph, hop: Hop, nodes: Ids) -> Ids:
    """Place in its row of the one edge that each node drew, int64 ``[n]``; -1 for any other number
    of edges."""
    assert hop.positions is not None
    indptr = graph.indptr.numpy()
    order = np.argsort(hop.edge_dst, kind="stable")
    dst, positions = hop.edge_dst[order], hop.positions[order]
    first, last = np.searchsorted(dst, nodes), np.searchsorted(dst, nodes, side="right")
    places = np.full(nodes.size, -1, dtype=np.int64)
    one = last - first == 1
    places[one] = positions[first[one]] - indptr[nodes[one]]
    return places


def _draws(subject: Subject, given: Input, law: str, epochs: int, batches: int) -> list[list[Ids]]:
    """Single picks of all seeds by epoch and batch; the seeds of all batches are equal."""
    request = Request(given.graph, (1,), law, subject.picks(law)[0], seed=21)
    drawer = subject.build(request)
    nodes = given.seeds.numpy()
    try:
        return [
            [
                single_picks(given.graph, drawer.draw(given.seeds, epoch, number).hops()[0], nodes)
                for number in range(batches)
            ]
            for epoch in range(epochs)
        ]
    finally:
        drawer.close()


def within_process(subject: Subject, plan: Plan) -> Iterator[Entry]:
    """Independence of rows of a batch, of batches of an epoch, of epochs, and of hops."""
    law = any_law(subject)
    names = ("rows", "batches", "epochs", "hops")
    if not law:
        yield from (
            Entry(name, ABSENT, ALWAYS, "single picks are tested without weights only")
            for name in names
        )
        return
    given = stars((DEGREE,), plan.pairs)
    try:
        draws = _draws(subject, given, law, plan.epochs, plan.batches)
        hops = _hop_pairs(subject, law, plan)
    except Exception as error:
        yield from (Entry(name, FAILS, ALWAYS, f"it raised {error}"[:200]) for name in names)
        return
    rows: Pairs = [(x[0::2], x[1::2]) for epoch in draws for x in epoch]
    batches = [(x, y) for epoch in draws for x, y in zip(epoch[0::2], epoch[1::2], strict=False)]
    epochs = [
        (x, y)
        for one, other in zip(draws[0::2], draws[1::2], strict=False)
        for x, y in zip(one, other, strict=True)
    ]
    for name, pairs in zip(names, (rows, batches, epochs, hops), strict=True):
        yield judged(name, pairs, ALWAYS, subject)


def _hop_pairs(subject: Subject, law: str, plan: Plan) -> Pairs:
    """A root's pick, and the pick of the child that it drew, at the next hop."""
    given = trees(DEGREE, plan.pairs)
    graph, roots = given.graph, given.seeds.numpy()
    request = Request(graph, (1, 1), law, subject.picks(law)[0], seed=22)
    drawer = subject.build(request)
    pairs: Pairs = []
    try:
        for number in range(plan.epochs * plan.batches // 2):
            first, second = drawer.draw(given.seeds, 0, number).hops()
            picks = single_picks(graph, first, roots)
            starts = graph.indptr.numpy()[roots]
            children = graph.indices.numpy()[starts + picks.clip(min=0)].astype(np.int64)
            below = single_picks(graph, second, children)
            pairs.append((picks, below))
    finally:
        drawer.close()
    return pairs


def judged(name: str, pairs: Sequence[tuple[Ids, Ids]], scope: str, subject: Subject) -> Entry:
    """The entry of the independence of both draws of all pairs, places from 0 to ``DEGREE`` - 1."""
    table = np.zeros((DEGREE, DEGREE), dtype=np.int64)
    for x, y in pairs:
        valid = (x >= 0) & (y >= 0) & (x < DEGREE) & (y < DEGREE)
        np.add.at(table, (x[valid], y[valid]), 1)
    count = int(table.sum())
    if count == 0:
        return Entry(name, FAILS, scope, "no row has a single pick at fanout 1", PAIR_LEVEL)
    p = independence_p(table)
    bias = detectable_copies(DEGREE, count, PAIR_LEVEL)
    verdict, reason, snippet = PASSES, "", ""
    if p <= PAIR_LEVEL:
        same = int(np.trace(table))
        by_chance = float(table.sum(1) @ table.sum(0)) / count
        verdict = FAILS
        reason = (
            f"the picks depend on each other: equal places in {same:,} of {count:,} pairs,"
            f" {by_chance:,.0f} if they were independent"
        )
        snippet = pair_snippet(subject, name, DEGREE)
    return Entry(name, verdict, scope, reason, PAIR_LEVEL, count, 1, bias, COPIED, snippet)


def of_workers(subject: Subject, plan: Plan) -> Iterator[Entry]:
    """Independence of two loader processes, and of their epochs."""
    names = ("workers", "worker_epochs")
    law = any_law(subject)
    given = stars((DEGREE,), plan.pairs)
    made: Callable[[int, int], list[list[Ids]]] | str
    if not plan.workers or not law:
        made = "not tested"
    else:
        request = Request(
            given.graph, (1,), law, subject.picks(law)[0], seed=31, batch_size=plan.pairs
        )
        made = subject.workers(request, given.seeds)
    if isinstance(made, str):
        yield from (Entry(name, ABSENT, WORKERS, made) for name in names)
        return
    try:
        positions = made(2, 8)
    except Exception as error:
        yield from (Entry(name, FAILS, WORKERS, f"it raised {error}"[:200]) for name in names)
        return
    starts = given.graph.indptr.numpy()[given.seeds.numpy()]
    draws = [
        [x - starts if x.size == starts.size else np.full(starts.size, -1) for x in epoch]
        for epoch in positions
    ]
    # Worker 0 draws the even batches, worker 1 the odd ones.
    workers = [(x, y) for epoch in draws for x, y in zip(epoch[0::2], epoch[1::2], strict=True)]
    epochs = list(zip(draws[0], draws[1], strict=True))
    for name, pairs in zip(names, (workers, epochs), strict=True):
        yield judged(name, pairs, WORKERS, subject)


def of_ranks(subject: Subject, plan: Plan) -> Entry:
    """Independence of two processes that start without a seed of the user's."""
    words = subject.rank_command() if plan.ranks else "not tested in a quick certificate"
    if isinstance(words, str) or not any_law(subject):
        return Entry("ranks", ABSENT, RANKS, words if isinstance(words, str) else "not tested")
    batches = plan.epochs * plan.batches // 2
    draws = []
    for rank in range(2):
        command = [sys.executable, "-m", "gnnbench.certification.rank", *words]
        command += [str(rank), str(batches), str(plan.pairs)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=RANK_TIMEOUT_S, check=True
            )
        except (subprocess.SubprocessError, OSError) as error:
            return Entry("ranks", FAILS, RANKS, f"a rank ended with {type(error).__name__}")
        draws.append(
            [np.array(x, dtype=np.int64) for x in json.loads(done.stdout.splitlines()[-1])]
        )
    return judged("ranks", list(zip(*draws, strict=True)), RANKS, subject)


def rank_draws(subject: Subject, rank: int, batches: int, pairs: int) -> list[list[int]]:
    """Draw the batches of one of two ranks: numbers ``rank``, ``rank`` + 2 and so on.

    Returns the places of single picks by batch; no generator is seeded here.
    """
    given = stars((DEGREE,), pairs)
    law = any_law(subject)
    request = Request(given.graph, (1,), law, subject.picks(law)[0], seed=None)
    drawer = subject.build(request)
    nodes = given.seeds.numpy()
    return [
        single_picks(
            given.graph, drawer.draw(given.seeds, 0, rank + 2 * number).hops()[0], nodes
        ).tolist()
        for number in range(batches)
    ]
