"""Batches in PyG's form: ours converted, PyG's own as they are."""

from types import SimpleNamespace

import pytest
import torch
from model_blocks import BATCH, INNER, framework_of


@pytest.fixture
def framework():
    return framework_of("pyg")


def test_our_blocks_in_pygs_form(framework):
    inner, outer = framework.blocks(BATCH)
    assert inner.edge_index.tolist() == [[4, 0, 5, 5, 3], [0, 1, 1, 1, 3]]
    assert inner.edge_index.dtype == torch.int64
    assert (inner.num_src, inner.num_dst) == (6, 4)
    assert inner.degree.tolist() == [1, 3, 0, 1]
    assert outer.edge_index.tolist() == [[2, 3], [0, 0]]
    assert (outer.num_src, outer.num_dst) == (4, 2)


def test_and_back(framework):
    (theirs, _) = framework.blocks(BATCH)
    offsets = [0, *theirs.degree.int().cumsum(0).tolist()]
    assert offsets == INNER.indptr.tolist()
    assert theirs.edge_index[0].tolist() == INNER.indices.tolist()


def test_a_batch_that_pyg_gave_is_taken_as_it_is(framework):
    """Its blocks in our form are not even looked at."""
    given = SimpleNamespace(pyg_blocks=framework.blocks(BATCH))
    assert all(a is b for a, b in zip(framework.blocks(given), given.pyg_blocks, strict=True))
