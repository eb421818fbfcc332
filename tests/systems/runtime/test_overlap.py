"""Match degrees of an epoch's batches."""

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
    rows = batch_overlap.overlap_facts(stages(*args), [torch.tensor([0])] * 3, 0)
    assert {stage for stage, _, _ in rows} == {"order"}
    return {name: value for _, name, value in rows}


def test_match_degrees_of_the_papers_example():
    degrees_by_name = facts()
    assert degrees_by_name["match_degree"] == pytest.approx(sum(DEGREES.values()) / 3)
    assert degrees_by_name["match_degree_least"] == pytest.approx(3 / 5)
    assert degrees_by_name["match_degree_median"] == pytest.approx(3 / 5)
    assert degrees_by_name["match_degree_most"] == pytest.approx(5 / 6)
    assert (
        degrees_by_name["match_degree_drawn"]
        == degrees_by_name["match_degree_run"]
        == pytest.approx(3 / 5)
    )


def test_match_degree_in_the_order_of_execution():
    degrees_by_name = facts([0, 2, 1], 3)
    assert degrees_by_name["match_degree_drawn"] == pytest.approx(3 / 5)
    assert degrees_by_name["match_degree_run"] == pytest.approx((5 / 6 + 3 / 5) / 2)


def test_single_batch_has_no_match_degree():
    assert batch_overlap.overlap_facts(stages(), [torch.tensor([0])], 0) == []


def test_profile_of_a_cell_has_match_degrees(small_graph, one_thread):
    """The profile uses the epoch's batches and does not change the epoch's counters."""
    settings = {"features": "match", "order": "greedy"}
    system = make(small_graph, settings=settings, until="memory_io", batch_size=20, fanouts=(3, 2))
    profile_facts = system.profile(4)["facts"]
    degrees_by_name = {fact["name"]: fact["value"] for fact in profile_facts}
    drawn = [
        system.stages.sampler.sample(seeds, 4, number).input_nodes
        for number, seeds in enumerate(system.order.batches(4))
    ]
    degrees = match_degrees(drawn)
    every = degrees[torch.ones_like(degrees).triu(1).bool()]
    assert degrees_by_name["match_degree"] == pytest.approx(float(every.mean()))
    assert degrees_by_name["match_degree_least"] == float(every.min())
    assert degrees_by_name["match_degree_drawn"] == pytest.approx(float(degrees.diagonal(1).mean()))
    assert degrees_by_name["match_degree_run"] > degrees_by_name["match_degree_drawn"]
    assert system.counts.rows() == []
    assert make(small_graph, settings=settings).profile(4) == {}
