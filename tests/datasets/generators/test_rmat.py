"""R-MAT graphs: edges compared with plain Python, quadrants, names and storage."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gnnbench.core.errors import UsageError
from gnnbench.datasets.catalog import info, list_datasets, verify
from gnnbench.datasets.generators import rmat
from gnnbench.datasets.names import check_new_name, resolve
from gnnbench.datasets.prepare import load_dataset, prepare
from gnnbench.kernels import rmat as ops
from gnnbench.kernels import rng
from gnnbench.kernels.reference import rng as reference

ENDS = [round(p * 65536) for p in (0.57, 0.76, 0.95)]


def plain_edge(key: int, scale: int, edge: int) -> tuple[int, int]:
    src = dst = 0
    for bit in range(scale):
        words = reference.philox(key, (edge & 0xFFFFFFFF, edge >> 32, bit // 8, 0))
        half = words[bit % 8 // 2] >> 16 * (bit % 2) & 0xFFFF
        quadrant = sum(half >= end for end in ENDS)
        src |= (quadrant >= 2) << bit
        dst |= (quadrant in (1, 3)) << bit
    return src, dst


def edges_of(indptr: torch.Tensor, indices: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Sources and targets, in the order of the CSC."""
    return indices.long(), torch.repeat_interleave(torch.arange(indptr.numel() - 1), indptr.diff())


@pytest.mark.parametrize("scale", [1, 4, 8, 9, 17])
def test_edges_equal_the_plain_implementation(scale: int) -> None:
    identity = torch.arange(1 << scale)
    src, dst = edges_of(*ops.graph(77, scale, 301, ENDS, identity))
    expected = sorted(plain_edge(77, scale, i)[::-1] for i in range(301))
    assert list(zip(dst.tolist(), src.tolist(), strict=True)) == expected


def test_quadrants_have_their_probabilities() -> None:
    src, dst = edges_of(*ops.graph(1, 8, 40_000, ENDS, torch.arange(256)))
    for bit in range(8):
        counts = torch.bincount((src >> bit & 1) * 2 + (dst >> bit & 1), minlength=4)
        for count, share in zip(counts.tolist(), (0.57, 0.19, 0.19, 0.05), strict=True):
            assert abs(count / 40_000 - share) < 5 * (share * (1 - share) / 40_000) ** 0.5


@pytest.mark.parametrize("ends", [(1, 1, 1), (65536, 65536, 65536), (1, 65536, 65536)])
def test_one_quadrant_may_have_all_edges(ends: tuple[int, int, int]) -> None:
    src, dst = edges_of(*ops.graph(1, 6, 2000, ends, torch.arange(64)))
    in_source, in_target = ends[1] == 1, ends[0] == 1
    assert (src == 63 * in_source).all() and (dst == 63 * in_target).all()


def test_graph_has_permuted_ids_and_sorted_rows() -> None:
    indptr, indices = rmat.graph(6, 3)
    nodes, edges = rmat.counts(6)
    assert (indptr.numel() - 1, indices.numel()) == (nodes, edges) == (64, 123_000_000 >> 15)
    names = rng.permutation(nodes, rng.key(3, 0, "rmat-names")).tolist()
    ends = [plain_edge(rng.key(3, 0, "rmat"), 6, i) for i in range(edges)]
    expected = sorted((names[dst], names[src]) for src, dst in ends)
    src, dst = edges_of(indptr, indices)
    assert list(zip(dst.tolist(), src.tolist(), strict=True)) == expected
    assert indices.dtype == torch.int32 and indptr.dtype == torch.int64


@pytest.mark.parametrize("threads", [1, 3])
def test_graph_with_large_parts_is_pinned(threads: int) -> None:
    """About 3700 keys per part, more in hubs. A sort of all keys at once gave the same digests."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        arrays = rmat.graph(16, 0)
    finally:
        torch.set_num_threads(before)
    assert [hashlib.sha256(t.numpy().tobytes()).hexdigest() for t in arrays] == [
        "2879b5943d0bd6e1b1a6b163e3ca39ab1dd387823df1f3804d38b451a989e396",
        "9c8a124b9c1eb65939c1916c6b11c4a4c335d847a409e98bd54c8fc07e086536",
    ]


def test_graph_without_edges() -> None:
    indptr, indices = ops.graph(0, 5, 0, ENDS, torch.arange(32))
    assert indptr.tolist() == [0] * 33 and indices.numel() == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scale": 0}, "scale must be at least 1"),
        ({"scale": 31}, "below 31, it is 31"),
        ({"num_edges": -1}, "num_edges must be at least 0"),
        ({"ends": [1, 2]}, "ends must hold 3"),
        ({"ends": [3, 2, 4]}, "ends must rise"),
        ({"ends": [3, 4, 65537]}, "ends must rise"),
        ({"names": torch.arange(31)}, "names must hold 32 nodes, it has 31"),
        ({"names": torch.arange(32) + 1}, "permutation"),
        ({"names": torch.arange(32) - 1}, "permutation"),
        ({"names": torch.arange(32).int()}, "names must be int64"),
    ],
)
def test_invalid_arguments_are_refused(changes: dict[str, Any], message: str) -> None:
    good = {"key": 0, "scale": 5, "num_edges": 999, "ends": ENDS, "names": torch.arange(32)}
    with pytest.raises(UsageError, match=message):
        ops.graph(**{**good, **changes})


def test_small_graph_is_pinned() -> None:
    """tests/gpu compares the GPU's result with this one."""
    indptr, indices = rmat.graph(10, 0)
    digest = hashlib.sha256(indptr.numpy().tobytes() + indices.numpy().tobytes()).hexdigest()
    assert digest == "7a0b50936aef0757191b4d8e442a5b87556f2d6b729aae0678ade11f5ee8c018"


def test_stored_graph_has_its_counts_and_parallel_edges(root: Path) -> None:
    graph = load_dataset("rmat@10")
    assert (graph.name, graph.num_nodes, graph.num_edges) == ("rmat@10", 1024, 123_000_000 >> 11)
    assert verify("rmat@10").ok
    with_neighbours = torch.nonzero(graph.indptr.diff()).flatten()
    assert torch.equal(graph.train_idx, with_neighbours) and 0 < with_neighbours.numel() < 1024
    assert graph.val_idx.numel() == graph.test_idx.numel() == 0
    assert graph.features.shape == (1024, 1) and graph.indices.dtype == torch.int32
    rows = np.repeat(np.arange(1024), graph.indptr.diff())
    ends = set(zip(rows.tolist(), graph.indices.tolist(), strict=True))
    assert len(ends) < graph.num_edges  # parallel edges are kept
    assert prepare("rmat@10") == prepare("RMAT@10")
    other = load_dataset("rmat@10", seed=1)
    assert not torch.equal(other.indices, graph.indices)
    assert info("rmat@10").summary.state == "prepared"


def test_names_and_counts(root: Path) -> None:
    assert resolve("rmat").name == "rmat@21"
    assert resolve("rmat@12+sym").name == "rmat@12+sym"
    assert "rmat@21" in [d.name for d in list_datasets()]
    summary = info("rmat").summary
    assert (summary.state, summary.num_nodes, summary.num_edges) == (
        "generated", 2_097_152, 123_000_000,
    )  # fmt: skip
    for wrong in (
        "rmat@3", "rmat@31", "rmat@0.5", "rmat@", "rmat@x", "rmat@9x3", "rmat@9x0x4", "rmat@9x3x0",
        "rmat@9x3x4x5", "rmat@31x3x4", "rmat@9x1024x4",
    ):  # fmt: skip
        with pytest.raises(UsageError, match="log of its nodes, 4 to 30"):
            resolve(wrong)
    with pytest.raises(UsageError, match="unknown dataset"):
        resolve("rmat~twin")
    with pytest.raises(UsageError, match="another dataset"):
        check_new_name("rmat")


def test_name_sets_degree_and_width(root: Path) -> None:
    assert resolve("rmat@9x3x20+sym").name == "rmat@9x3x20+sym"
    summary = info("rmat@27x12x128").summary
    assert (summary.num_nodes, summary.num_edges, summary.feature_dim) == (1 << 27, 12 << 27, 128)
    graph = load_dataset("rmat@9x3x20")
    assert (graph.num_nodes, graph.num_edges) == (512, 3 * 512)
    assert graph.features.shape == (512, 20)
    assert graph.features.unique().numel() > 100
    names = rng.permutation(512, rng.key(0, 0, "rmat-names"))  # a prefix of the same edges
    dst = torch.tensor([plain_edge(rng.key(0, 0, "rmat"), 9, i)[1] for i in range(3 * 512)])
    assert torch.equal(graph.indptr.diff(), torch.bincount(names[dst], minlength=512))
    assert info("rmat@9x3x20").summary.state == "prepared"
    assert info("rmat@9").summary.state == "generated"


def test_symmetric_version_has_at_most_twice_the_edges(root: Path) -> None:
    graph = load_dataset("rmat@8+sym")
    assert graph.meta["symmetric"] is True
    assert graph.num_edges <= 2 * rmat.counts(8)[1]
