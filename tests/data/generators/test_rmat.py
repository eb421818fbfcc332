"""R-MAT graphs: their law, drawn again in plain Python, and their place in the store."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
import torch

from gnnbench import rng
from gnnbench.data.catalog import info, list_datasets, verify
from gnnbench.data.generators import rmat
from gnnbench.data.names import check_new_name, resolve
from gnnbench.data.prepare import load_dataset, prepare
from gnnbench.errors import UsageError
from gnnbench.reference import rng as reference


def plain_edge(key: int, scale: int, edge: int) -> tuple[int, int]:
    src = dst = 0
    for bit in range(scale):
        words = reference.philox(key, (edge & 0xFFFFFFFF, edge >> 32, bit // 8, 0))
        half = words[bit % 8 // 2] >> 16 * (bit % 2) & 0xFFFF
        quadrant = sum(half >= round(p * 65536) for p in (0.57, 0.76, 0.95))
        src |= (quadrant >= 2) << bit
        dst |= (quadrant in (1, 3)) << bit
    return src, dst


@pytest.mark.parametrize(("scale", "first"), [(4, 0), (9, 100), (21, (1 << 32) - 3)])
def test_edges_are_the_law_s(scale: int, first: int) -> None:
    src, dst = rmat.edge_chunk(77, scale, first, 6)
    wanted = [plain_edge(77, scale, first + i) for i in range(6)]
    assert list(zip(src.tolist(), dst.tolist(), strict=True)) == wanted


def test_quadrants_have_their_shares() -> None:
    src, dst = rmat.edge_chunk(1, 8, 0, 40_000)
    for bit in range(8):
        counts = torch.bincount((src >> bit & 1) * 2 + (dst >> bit & 1), minlength=4)
        for count, share in zip(counts.tolist(), (0.57, 0.19, 0.19, 0.05), strict=True):
            assert abs(count / 40_000 - share) < 5 * (share * (1 - share) / 40_000) ** 0.5


def test_a_graph_is_its_edges_renamed_and_sorted() -> None:
    indptr, indices = rmat.graph(6, 3)
    nodes, edges = rmat.counts(6)
    assert (indptr.numel() - 1, indices.numel()) == (nodes, edges) == (64, 123_000_000 >> 15)
    names = rng.permutation(nodes, rng.key(3, 0, "rmat-names"))
    src, dst = rmat.edge_chunk(rng.key(3, 0, "rmat"), 6, 0, edges)
    wanted = sorted(zip(names[dst].tolist(), names[src].tolist(), strict=True))
    rows = torch.repeat_interleave(torch.arange(nodes), indptr.diff())
    assert list(zip(rows.tolist(), indices.tolist(), strict=True)) == wanted
    assert indices.dtype == torch.int32 and indptr.dtype == torch.int64


def test_chunks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = rmat.graph(8, 0)
    monkeypatch.setattr(rmat, "_CHUNK", 1000)
    assert all(map(torch.equal, whole, rmat.graph(8, 0)))


def test_bits_stay_what_they_are() -> None:
    """The same on every machine; tests/gpu holds the GPU to it."""
    indptr, indices = rmat.graph(10, 0)
    digest = hashlib.sha256(indptr.numpy().tobytes() + indices.numpy().tobytes()).hexdigest()
    assert digest == "7a0b50936aef0757191b4d8e442a5b87556f2d6b729aae0678ade11f5ee8c018"


def test_in_the_store(root: Path) -> None:
    graph = load_dataset("rmat@10")
    assert (graph.name, graph.num_nodes, graph.num_edges) == ("rmat@10", 1024, 123_000_000 >> 11)
    assert verify("rmat@10").ok
    able = torch.nonzero(graph.indptr.diff()).flatten()
    assert torch.equal(graph.train_idx, able) and 0 < able.numel() < 1024
    assert graph.val_idx.numel() == graph.test_idx.numel() == 0
    assert graph.features.shape == (1024, 1) and graph.indices.dtype == torch.int32
    rows = np.repeat(np.arange(1024), graph.indptr.diff())
    ends = set(zip(rows.tolist(), graph.indices.tolist(), strict=True))
    assert len(ends) < graph.num_edges  # parallel edges are kept
    assert prepare("rmat@10") == prepare("RMAT@10")
    other = load_dataset("rmat@10", seed=1)
    assert not torch.equal(other.indices, graph.indices)
    assert info("rmat@10").summary.state == "prepared"


def test_names(root: Path) -> None:
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


def test_another_degree_and_width(root: Path) -> None:
    assert resolve("rmat@9x3x20+sym").name == "rmat@9x3x20+sym"
    summary = info("rmat@27x12x128").summary
    assert (summary.num_nodes, summary.num_edges, summary.feature_dim) == (1 << 27, 12 << 27, 128)
    graph = load_dataset("rmat@9x3x20")
    assert (graph.num_nodes, graph.num_edges) == (512, 3 * 512)
    assert graph.features.shape == (512, 20)
    assert graph.features.unique().numel() > 100
    _, dst = rmat.edge_chunk(rng.key(0, 0, "rmat"), 9, 0, 3 * 512)  # the first of the same edges
    names = rng.permutation(512, rng.key(0, 0, "rmat-names"))
    assert torch.equal(graph.indptr.diff(), torch.bincount(names[dst], minlength=512))
    assert info("rmat@9x3x20").summary.state == "prepared"
    assert info("rmat@9").summary.state == "generated"


def test_made_symmetric(root: Path) -> None:
    graph = load_dataset("rmat@8+sym")
    assert graph.meta["symmetric"] is True
    assert graph.num_edges <= 2 * rmat.counts(8)[1]
