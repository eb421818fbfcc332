"""Facts of hand-written batches, and of a graph compared with direct counts."""

from __future__ import annotations

import pytest
import torch
from compose import make

from gnnbench.contrib.advisor import facts
from gnnbench.contrib.advisor.facts import Curve, look, shared


def batches(*ids):
    return [torch.tensor(some) for some in ids]


def test_shared_rows_of_batches():
    #      0 and 1 share 2 of 4; 0 and 2 share 3 of 4; 1 and 2 share 1 of 4
    overlap = shared(batches([0, 1, 2, 3], [2, 3, 4, 5], [0, 1, 2, 6]))
    assert overlap["match_degree"] == pytest.approx((2 / 4 + 3 / 4 + 1 / 4) / 3)
    assert overlap["kept_drawn"] == pytest.approx((2 + 1) / 12)
    assert overlap["kept_greedy"] == pytest.approx((3 + 1) / 12)  # 0, then 2, then 1
    assert overlap["union"] == pytest.approx(7 / 12)


def test_single_batch_shares_no_rows():
    overlap = shared(batches([4, 2]))
    assert overlap == {"match_degree": 0.0, "kept_drawn": 0.0, "kept_greedy": 0.0, "union": 1.0}


def test_union_and_misses_of_windows(monkeypatch):
    monkeypatch.setattr(facts, "WINDOW", 2)
    three = batches([0, 1], [1, 2], [0, 1])
    assert [len(w) for w in facts.windows(three)] == [2, 1]
    assert shared(three)["union"] == pytest.approx((3 + 2) / 6)
    # the first two of the ranking, 1 and 3, are cached
    missed = facts._missed(facts.windows(three), torch.tensor([1, 3, 0, 2]), 0.5)
    assert missed == pytest.approx((2 + 1) / 5)


def test_curve_has_hits_at_its_ratios_only():
    curve = Curve("degree", ((0.1, 0.4), (0.5, 0.9)))
    assert curve.at(0.5) == 0.9
    with pytest.raises(KeyError):
        curve.at(0.2)


def test_facts_of_a_graph_agree_with_counts(small_graph, one_thread):
    system = make(small_graph, "baseline", until="sample", batch_size=50)
    graph_facts = look(system, 0.25)
    drawn = [
        system.stages.sampler.sample(seeds, 0, number)
        for number, seeds in enumerate(system.seeds(0))
    ]
    rows = [batch.input_nodes for batch in drawn]
    requested = sum(ids.numel() for ids in rows)
    assert (graph_facts.nodes, graph_facts.edges_of_graph) == (400, small_graph.num_edges)
    assert graph_facts.row_bytes == 24 * 4 and graph_facts.table_bytes == 400 * 24 * 4
    assert graph_facts.batches == pytest.approx(small_graph.train_idx.numel() / 50)
    assert graph_facts.looked == len(drawn)
    assert graph_facts.rows == pytest.approx(requested / len(drawn))
    assert graph_facts.edges == pytest.approx(sum(b.sizes().num_edges for b in drawn) / len(drawn))
    assert graph_facts.footprint == torch.cat(rows).unique().numel()
    assert graph_facts.most_degree == int(small_graph.indptr.diff().max())
    # hits of a cache of the 100 nodes that are neighbours most often
    counts = torch.bincount(small_graph.indices, minlength=400)
    best = sorted(range(400), key=lambda v: (-int(counts[v]), v))[:100]
    hits = sum(int(torch.isin(ids, torch.tensor(best, dtype=ids.dtype)).sum()) for ids in rows)
    assert graph_facts.hits("degree") == pytest.approx(hits / requested)
    assert 0 < graph_facts.union <= 1 and 0 <= graph_facts.union_missed <= 1
    again = look(make(small_graph, "baseline", until="sample", batch_size=50), 0.25)
    assert again == graph_facts  # facts are deterministic
