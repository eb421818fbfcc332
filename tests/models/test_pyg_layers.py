"""Batches as blocks of PyG: native ones are converted, PyG's are used unchanged."""

from types import SimpleNamespace

import pytest
import torch
from model_blocks import BATCH, INNER, framework_of


@pytest.fixture
def framework():
    return framework_of("pyg")


def test_native_blocks_are_converted(framework):
    inner, outer = framework.blocks(BATCH)
    assert inner.edge_index.tolist() == [[4, 0, 5, 5, 3], [0, 1, 1, 1, 3]]
    assert inner.edge_index.dtype == torch.int64
    assert (inner.num_src, inner.num_dst) == (6, 4)
    assert inner.degree.tolist() == [1, 3, 0, 1]
    assert outer.edge_index.tolist() == [[2, 3], [0, 0]]
    assert (outer.num_src, outer.num_dst) == (4, 2)


def test_converted_block_has_the_csc_of_the_native_one(framework):
    (inner, _) = framework.blocks(BATCH)
    offsets = [0, *inner.degree.int().cumsum(0).tolist()]
    assert offsets == INNER.indptr.tolist()
    assert inner.edge_index[0].tolist() == INNER.indices.tolist()


def test_batch_of_pyg_is_not_converted(framework):
    """The batch has no native blocks."""
    foreign = SimpleNamespace(pyg_blocks=framework.blocks(BATCH))
    assert all(a is b for a, b in zip(framework.blocks(foreign), foreign.pyg_blocks, strict=True))
