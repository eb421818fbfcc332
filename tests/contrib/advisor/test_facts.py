"""Facts of batches made by hand, and of a graph's own against what is known of it."""

from __future__ import annotations

import pytest
import torch
from compose import make

from gnnbench.contrib.advisor import facts
from gnnbench.contrib.advisor.facts import Curve, look, shared


def batches(*ids):
    return [torch.tensor(some) for some in ids]


def test_what_batches_share():
    #      0 and 1 share 2 of 4; 0 and 2 share 3 of 4; 1 and 2 share 1 of 4
    found = shared(batches([0, 1, 2, 3], [2, 3, 4, 5], [0, 1, 2, 6]))
    assert found["match_degree"] == pytest.approx((2 / 4 + 3 / 4 + 1 / 4) / 3)
    assert found["kept_drawn"] == pytest.approx((2 + 1) / 12)
    assert found["kept_greedy"] == pytest.approx((3 + 1) / 12)  # 0, then 2, then 1
    assert found["union"] == pytest.approx(7 / 12)


def test_a_single_batch_shares_nothing():
    found = shared(batches([4, 2]))
    assert found == {"match_degree": 0.0, "kept_drawn": 0.0, "kept_greedy": 0.0, "union": 1.0}


def test_windows_are_counted_one_by_one(monkeypatch):
    monkeypatch.setattr(facts, "WINDOW", 2)
    three = batches([0, 1], [1, 2], [0, 1])
    assert [len(w) for w in facts.windows(three)] == [2, 1]
    assert shared(three)["union"] == pytest.approx((3 + 2) / 6)
    # of {0, 1, 2} and {0, 1} the ranking's first two of four, 1 and 3, are cached
    missed = facts._missed(facts.windows(three), torch.tensor([1, 3, 0, 2]), 0.5)
    assert missed == pytest.approx((2 + 1) / 5)


def test_hits_are_read_off_the_ratio():
    curve = Curve("degree", ((0.1, 0.4), (0.5, 0.9)))
    assert curve.at(0.5) == 0.9
    with pytest.raises(KeyError):
        curve.at(0.2)


def test_a_graphs_own(small_graph, one_thread):
    system = make(small_graph, "baseline", until="sample", batch_size=50)
    found = look(system, 0.25)
    drawn = [
        system.stages.sampler.sample(seeds, 0, number)
        for number, seeds in enumerate(system.seeds(0))
    ]
    rows = [batch.input_nodes for batch in drawn]
    asked = sum(ids.numel() for ids in rows)
    assert (found.nodes, found.edges_of_graph) == (400, small_graph.num_edges)
    assert found.row_bytes == 24 * 4 and found.table_bytes == 400 * 24 * 4
    assert found.batches == pytest.approx(small_graph.train_idx.numel() / 50)
    assert found.looked == len(drawn)
    assert found.rows == pytest.approx(asked / len(drawn))
    assert found.edges == pytest.approx(sum(b.sizes().num_edges for b in drawn) / len(drawn))
    assert found.footprint == torch.cat(rows).unique().numel()
    assert found.most_degree == int(small_graph.indptr.diff().max())
    # hits of a cache of the 100 nodes that stand in most rows, counted one by one
    counts = torch.bincount(small_graph.indices, minlength=400)
    best = sorted(range(400), key=lambda v: (-int(counts[v]), v))[:100]
    hits = sum(int(torch.isin(ids, torch.tensor(best, dtype=ids.dtype)).sum()) for ids in rows)
    assert found.hits("degree") == pytest.approx(hits / asked)
    assert 0 < found.union <= 1 and 0 <= found.union_missed <= 1
    again = look(make(small_graph, "baseline", until="sample", batch_size=50), 0.25)
    assert again == found  # no number of it is one of time or of chance
