"""Batches as blocks of DGL: native ones are converted, DGL's are used unchanged."""

from types import SimpleNamespace

import pytest
from model_blocks import BATCH, INNER, framework_of

from gnnbench.core.errors import UnsupportedError
from gnnbench.models.kinds import LayerKind
from gnnbench.models.weights import make_weights


@pytest.fixture
def framework():
    return framework_of("dgl")


def test_native_blocks_are_converted(framework):
    inner, outer = framework.blocks(BATCH)
    src, dst = inner.edges()
    assert list(zip(src.tolist(), dst.tolist(), strict=True)) == [
        (4, 0), (0, 1), (5, 1), (5, 1), (3, 3),
    ]  # fmt: skip
    assert (inner.num_src_nodes(), inner.num_dst_nodes()) == (6, 4)
    assert (outer.num_src_nodes(), outer.num_dst_nodes(), outer.num_edges()) == (4, 2, 2)


def test_converted_block_has_the_csc_of_the_native_one(framework):
    (inner, _) = framework.blocks(BATCH)
    offsets, sources, _ = inner.adj_tensors("csc")
    assert offsets.tolist() == INNER.indptr.tolist()
    assert sources.tolist() == INNER.indices.tolist()


def test_batch_of_dgl_is_not_converted(framework):
    """The batch has no native blocks."""
    foreign = SimpleNamespace(dgl_blocks=framework.blocks(BATCH))
    assert all(a is b for a, b in zip(framework.blocks(foreign), foreign.dgl_blocks, strict=True))


def test_layer_that_dgl_lacks_is_refused(framework):
    kind = LayerKind("sums", "sum", own_weights=False)
    (weights,) = make_weights([4, 3], kind, 0)
    with pytest.raises(UnsupportedError, match="no 'sums'; they have: gcn, graphsage"):
        framework.layer(kind, weights)
