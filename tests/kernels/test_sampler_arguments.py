"""Invalid arguments of the batch sampler."""

from typing import Any

import pytest
import torch
from ops_graphs import INDICES, INDPTR
from torch import Tensor

from gnnbench.core.errors import DataError, UsageError
from gnnbench.kernels import rng, sampler

KEY = rng.key(0, 0, "sample")

BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"seeds": torch.tensor([6])}, UsageError, "seeds holds the id 6 at position 0"),
    ({"seeds": torch.tensor([0, -1])}, UsageError, "seeds holds the id -1 at position 1"),
    ({"seeds": torch.tensor([1, 0, 1])}, UsageError, "seeds holds an id twice"),
    ({"seeds": torch.tensor([1.0])}, UsageError, "seeds must be int32 or int64, it is float32"),
    ({"seeds": torch.tensor([[1]])}, UsageError, "seeds must have 1 dimension"),
    ({"seeds": torch.arange(6)[::2]}, UsageError, "seeds must be contiguous"),
    ({"fanouts": []}, UsageError, "fanouts is empty"),
    ({"fanouts": [3, 0]}, UsageError, "fanout must be at least 1, or -1 .*, it is 0"),
    ({"fanouts": [-2]}, UsageError, "fanout must be at least 1, or -1 .*, it is -2"),
    ({"fanouts": [1 << 31]}, UsageError, "fanout must be below 2\\^31"),
    ({"pick": "fisher"}, UsageError, "pick must be one of reservoir, floyd, .* not 'fisher'"),
    ({"frontier": "old"}, UsageError, "frontier must be 'cumulative' or 'new', not 'old'"),
    ({"batch": -1}, UsageError, "batch must be at least 0"),
    ({"batch": 1 << 32}, UsageError, "batch must be at least 0 and below 4294967296"),
    ({"indptr": INDPTR.int()}, UsageError, "indptr must be int64, it is int32"),
    ({"indptr": INDPTR[:0]}, UsageError, "indptr must hold num_nodes \\+ 1 offsets"),
    ({"indptr": INDPTR.repeat_interleave(2)[::2]}, UsageError, "indptr must be contiguous"),
    ({"indices": INDICES.short()}, UsageError, "indices must be int32 or int64, it is int16"),
    ({"indices": INDICES[:2]}, DataError, "indptr is broken at node 0"),
    ({"indptr": INDPTR.flip(0).contiguous()}, DataError, "indptr is broken at node 0"),
    ({"indices": INDICES + 4}, DataError, "indices holds an id that is not a node"),
    ({"indices": INDICES.long() - 9}, DataError, "indices holds an id that is not a node"),
]


@pytest.mark.parametrize(("changed", "error", "message"), BAD, ids=[m for _, _, m in BAD])
def test_bad_arguments(changed: dict[str, Any], error: type[Exception], message: str) -> None:
    arguments = {"indptr": INDPTR, "indices": INDICES, "seeds": torch.tensor([0, 1])}
    arguments |= {"fanouts": [3, 2], "pick": "floyd", "frontier": "cumulative", "batch": 0}
    arguments |= changed
    args = [arguments.pop(name) for name in ("indptr", "indices", "seeds", "fanouts")]
    with pytest.raises(error, match=message) as caught:
        sampler.hop_by_hop(*args, **arguments, key=KEY)  # type: ignore[arg-type]
    assert ".cpp" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("dst", "message"),
    [
        (torch.tensor([9], dtype=torch.int32), "dst holds the id 9"),
        (torch.tensor([1]), "dst must be int32, it is int64"),
    ],
)
def test_bad_hop_arguments(dst: Tensor, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        sampler.sample_hop(INDPTR, INDICES, dst, 2, pick="floyd", key=KEY, hop=0, batch=0)
    with pytest.raises(UsageError, match="hop must be at least 0 and below 65536"):
        sampler.sample_hop(
            INDPTR,
            INDICES,
            torch.tensor([1], dtype=torch.int32),
            2,
            pick="floyd",
            key=KEY,
            hop=1 << 16,
            batch=0,
        )
