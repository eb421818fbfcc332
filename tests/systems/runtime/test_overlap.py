"""Facts about the overlap of an epoch's batches."""

from types import SimpleNamespace

import pytest
import torch
from compose import make

from gnnbench.kernels.reference.match import match_degrees
from gnnbench.pipelines.schedule import Stages
from gnnbench.systems.runtime import batch_overlap

# FastGL Fig. 6, twice; the second time two batches are swapped.
NODES = [[0, 1, 2, 3, 4, 5], [0, 3, 4, 10, 12], [0, 1, 2, 3, 4, 7]]
DEGREES = {(0, 1): 3 / 5, (0, 2): 5 / 6, (1, 2): 3 / 5}


def stages(order=None, window=1):
    drawn = [
        SimpleNamespace(input_nodes=torch.tensor(ids), number=n) for n, ids in enumerate(NODES)
    ]
    arrange = lambda some, last: order or list(range(len(some)))  # noqa: E731
    return Stages(
        SimpleNamespace(sample=lambda seeds, epoch, number: drawn[number]),
        SimpleNamespace(window=1),
        None,
        lambda batch, rows: None,
        SimpleNamespace(window=window, arrange=arrange),
    )


def facts(*args):
    found = batch_overlap.overlap_facts(stages(*args), [torch.tensor([0])] * 3, 0)
    assert {stage for stage, _, _ in found} == {"order"}
    return {name: value for _, name, value in found}


def test_by_hand():
    found = facts()
    assert found["match_degree"] == pytest.approx(sum(DEGREES.values()) / 3)
    assert found["match_degree_least"] == pytest.approx(3 / 5)
    assert found["match_degree_median"] == pytest.approx(3 / 5)
    assert found["match_degree_most"] == pytest.approx(5 / 6)
    assert found["match_degree_drawn"] == found["match_degree_run"] == pytest.approx(3 / 5)


def test_as_run():
    found = facts([0, 2, 1], 3)
    assert found["match_degree_drawn"] == pytest.approx(3 / 5)
    assert found["match_degree_run"] == pytest.approx((5 / 6 + 3 / 5) / 2)


def test_one_batch_overlaps_with_none():
    assert batch_overlap.overlap_facts(stages(), [torch.tensor([0])], 0) == []


def test_of_a_cell(small_graph, one_thread):
    """The batches looked at are the epoch's; the counts of its epochs are left alone."""
    settings = {"features": "match", "order": "greedy"}
    system = make(small_graph, settings=settings, until="memory_io", batch_size=20, fanouts=(3, 2))
    told = system.profile(4)["facts"]
    found = {fact["name"]: fact["value"] for fact in told}
    drawn = [
        system.stages.sampler.sample(seeds, 4, number).input_nodes
        for number, seeds in enumerate(system.order.batches(4))
    ]
    degrees = match_degrees(drawn)
    every = degrees[torch.ones_like(degrees).triu(1).bool()]
    assert found["match_degree"] == pytest.approx(float(every.mean()))
    assert found["match_degree_least"] == float(every.min())
    assert found["match_degree_drawn"] == pytest.approx(float(degrees.diagonal(1).mean()))
    assert found["match_degree_run"] > found["match_degree_drawn"]
    assert system.counts.rows() == []
    assert make(small_graph, settings=settings).profile(4) == {}
