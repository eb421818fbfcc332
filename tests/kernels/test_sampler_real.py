"""The batch sampler on a real graph."""

from pathlib import Path

import numpy as np
import pytest
import torch
from ops_batches import pick_of
from ops_graphs import FRONTIERS, same
from scipy import sparse

from gnnbench.kernels import rng, sampler
from gnnbench.kernels.picks import PICKS, WITHOUT_REPLACEMENT
from gnnbench.kernels.reference import sampler as reference

FANOUTS = [15, 10, 5]


@pytest.fixture(scope="module")
def arxiv(real_data: Path) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The symmetric ogbn_arxiv graph, and its training nodes."""
    path = real_data / "ogbn_arxiv.npz"
    if not path.is_file():
        pytest.skip(f"{path} does not exist")
    with np.load(path) as z:
        indptr, indices, train = z["indptr"], z["indices"], z["train_idx"]
    n = len(indptr) - 1
    one_way = sparse.csr_matrix((np.ones(len(indices), np.int8), indices, indptr), shape=(n, n))
    both = (one_way + one_way.T).tocsr()
    both.sort_indices()
    return (
        torch.from_numpy(both.indptr.astype(np.int64)),
        torch.from_numpy(both.indices.astype(np.int32)),
        torch.from_numpy(train.astype(np.int64)),
    )


@pytest.mark.real_data
@pytest.mark.parametrize("frontier", FRONTIERS)
@pytest.mark.parametrize("pick", PICKS)
def test_real_graph_equals_the_reference(
    arxiv: tuple[torch.Tensor, torch.Tensor, torch.Tensor], pick: str, frontier: str
) -> None:
    indptr, indices, train = arxiv
    seeds = train[rng.permutation(len(train), rng.key(0, 0, "order"))[:100]]
    args = (indptr, indices, seeds, FANOUTS)
    key = rng.key(0, 0, "sample")
    spec = pick_of(pick, (indptr, indices))
    ours, theirs = (
        sample(*args, pick=spec, frontier=frontier, key=key, batch=0, with_positions=True)
        for sample in (sampler.hop_by_hop, reference.sample)
    )
    same(ours, theirs)
    assert ours.sampled_edges > 10_000


@pytest.mark.real_data
@pytest.mark.parametrize("pick", WITHOUT_REPLACEMENT)
def test_destinations_have_distinct_real_edges(
    arxiv: tuple[torch.Tensor, torch.Tensor, torch.Tensor], pick: str
) -> None:
    indptr, indices, train = arxiv
    degrees = indptr[1:] - indptr[:-1]
    for batch in range(5):
        seeds = train[batch * 1024 : (batch + 1) * 1024]
        drawn = sampler.hop_by_hop(
            indptr,
            indices,
            seeds,
            FANOUTS,
            pick=pick,
            frontier="cumulative",
            key=rng.key(1, 0, "sample"),
            batch=batch,
            with_positions=True,
        )
        for block, fanout in zip(drawn.blocks, reversed(FANOUTS), strict=True):
            counts = (block.indptr[1:] - block.indptr[:-1]).long()
            assert torch.equal(counts, degrees[block.dst_nodes.long()].clamp(max=fanout))
            assert block.positions is not None
            assert block.positions.unique().numel() == block.num_edges
            rows = torch.repeat_interleave(block.dst_nodes.long(), counts)
            assert ((block.positions >= indptr[rows]) & (block.positions < indptr[rows + 1])).all()
            assert torch.equal(indices[block.positions], block.src_nodes[block.indices.long()])
            assert block.src_nodes.unique().numel() == block.num_src
