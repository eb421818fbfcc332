"""Facts that twins are fitted to, on a graph small enough to count by hand."""

from __future__ import annotations

import pytest
import torch

from gnnbench.contrib.twin_facts import WORKLOADS, changed, main, measured, same_label
from gnnbench.datasets.graph import Graph
from gnnbench.datasets.manifest import manifests


@pytest.fixture
def star() -> Graph:
    """Training nodes 0 to 3; node i has the in-neighbours 4 (a hub) and 5 + i."""
    none = torch.empty(0, dtype=torch.int64)
    return Graph(
        "star",
        indptr=torch.tensor([0, 2, 4, 6, 8, 8, 8, 8, 8, 8]),
        indices=torch.tensor([4, 5, 4, 6, 4, 7, 4, 8], dtype=torch.int32),
        features=torch.empty((9, 0)),
        labels=torch.tensor([0, 0, 1, 1, 0, 0, 1, 1, 1]),
        train_idx=torch.arange(4),
        val_idx=none,
        test_idx=none,
        num_classes=2,
    )


def test_facts_of_two_batches(star: Graph) -> None:
    """Each batch of two seeds has five rows, one of which (the hub) is shared."""
    facts = measured(star, 2)
    assert facts["largest in-degree"] == 2
    assert facts["rows of a batch"] == 5
    assert facts["match"] == pytest.approx(1 / 5)
    assert facts["match spread"] == 0
    assert facts["similarity"] == 1  # of one node: the hub
    for policy in ("degree", "presc#1", "optimal"):
        # No row; the hub, in both batches; and another node, in one of them.
        assert [facts[f"hit {policy} {ratio}"] for ratio in (0.05, 0.1, 0.25)] == [0, 0.2, 0.3]


def test_workloads_differ_in_hops_and_pick(star: Graph) -> None:
    """With one neighbour each, walks from a node with two in-neighbours visit either."""
    assert measured(star, 4, workload="graphsage")["rows of a batch"] == 9
    assert {len(work.fanouts) for work in WORKLOADS.values()} == {2, 3}
    walked = measured(star, 4, workload="pinsage", ratios=(0.5, 1.0))
    assert 4 <= walked["rows of a batch"] <= 9
    assert walked["hit optimal 1"] == 1 and "hit optimal 0.1" not in walked


def test_facts_without_hits(star: Graph) -> None:
    facts = measured(star, 2, hits=False)
    assert facts["match"] == pytest.approx(1 / 5)
    assert not [fact for fact in facts if fact.startswith("hit")]


def test_single_batch_has_no_match(star: Graph) -> None:
    assert "match" not in measured(star, 4, hits=False)


def test_share_of_edges_within_a_label(star: Graph) -> None:
    """Two of four of the hub's edges and three of the four others."""
    assert same_label(star) == 5 / 8


def test_changed_replaces_settings_of_a_recipe() -> None:
    recipe = manifests()["products"].twin_recipe()
    other = changed(recipe, ["mixing=0.5", "degree_ratio=[2.0, 1.5]"])
    assert (other.mixing, other.degree_ratio) == (0.5, (2.0, 1.5))
    assert other.communities == recipe.communities
    assert changed(recipe, []) == recipe


def test_command_prints_measured_and_published_facts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["mag", "--scale", "0.001", "--seeds", "3"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("mag~twin@0.001, seed 3: 10,100 nodes, 300,000 edges, batches of 8")
    for fact, source, published, bound in (
        ("match", "fastgl:table4", 0.353, ""),
        ("hit degree 0.13", "fastgl:s3.1", 0.2, "at most "),
    ):
        (line,) = [line for line in lines if line.startswith(f"  {fact}  ") and source in line]
        value = float(line.removeprefix(f"  {fact}").split()[0])
        deviation = 100 * (value - published)
        deviation = max(deviation, 0) if bound else deviation
        assert line.endswith(f"{source} {bound}{published:g}: {deviation:+.1f} points")
