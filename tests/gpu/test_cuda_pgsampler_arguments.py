"""Arguments that the CUDA version of PGSampler refuses."""

from __future__ import annotations

import pytest
import torch
from gpu_graphs import Csc, skewed
from pgsampler_on_gpu import (
    HAND,
    IDS,
    SOUND,
    check,
    on_gpu,
    pick_of,
)

from gnnbench.core.errors import DataError, UnsupportedError, UsageError
from gnnbench.kernels.picks import PickSpec

pytestmark = pytest.mark.gpu


REFUSALS = [
    ({"seeds": [6]}, UsageError, "seeds holds an id outside the graph"),
    ({"seeds": [-1]}, UsageError, "seeds holds an id outside the graph"),
    ({"seeds": [1, 2, 1]}, UsageError, "seeds holds an id twice"),
    ({"indptr": [0, 3, 4, 7, 7, 13, 15]}, DataError, "indptr is broken"),
    ({"indptr": [0, 3, 4, 3, 7, 13, 14]}, DataError, "indptr is broken"),
    ({"indices": [1, 2, 3, 0, 2, 4, 4, 0, 1, 2, 9, 4, 5, 0]}, DataError, "indices holds an id"),
    ({"indices": [1, 2, 3, 0, 2, 4, 4, 0, 1, -2, 3, 4, 5, 0]}, DataError, "indices holds an id"),
]


@pytest.mark.parametrize("variant", [*SOUND, "as_printed"])
@pytest.mark.parametrize("dtype", IDS)
@pytest.mark.parametrize("change, error, message", REFUSALS)
def test_bad_arguments(change, error, message, dtype, variant):
    csc = Csc(
        torch.tensor(change.get("indptr", HAND.indptr.tolist())),
        torch.tensor(change.get("indices", HAND.indices.tolist()), dtype=dtype),
    )
    seeds = torch.tensor(change.get("seeds", [0, 1, 2, 3, 4, 5]), dtype=dtype)
    with pytest.raises(error, match=f"^{message}"):
        on_gpu(csc, seeds, [6, 6, 6], variant=variant, unsafe=variant == "as_printed")
    check(HAND, torch.arange(6), [2, 2])  # the next batch is correct


def test_refuses_a_seed_that_would_wrap():
    with pytest.raises(UsageError, match=r"^seeds holds an id outside the graph"):
        on_gpu(HAND, torch.tensor([1 << 32]), [2])


def test_refuses_broken_tables():
    csc = skewed(300, torch.int32, seed=7)
    spec = pick_of("weighted_alias", csc)
    wrong = PickSpec(spec.name, (torch.zeros_like(spec.tables[0]), spec.tables[1] + 5000), ())
    with pytest.raises(UsageError, match=r"^weights holds the tables of another graph"):
        on_gpu(csc, torch.arange(300), [2], wrong)


def test_refuses_a_graph_in_pageable_memory():
    with pytest.raises(UsageError, match=r"^indptr must be on the CUDA device"):
        on_gpu(HAND, torch.tensor([1]), [2], put=lambda t: t)


def test_random_walk_is_unsupported():
    with pytest.raises(UnsupportedError, match="pick 'random_walk'"):
        on_gpu(HAND, torch.tensor([1]), [2], PickSpec.random_walk(2, 2, 0.5))
