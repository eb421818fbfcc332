"""Invalid arguments of the batch sampler."""

from typing import Any

import pytest
import torch
from ops_batches import BAD, KEY, check_bad
from ops_graphs import INDICES, INDPTR
from torch import Tensor

from gnnbench.core.errors import DataError, UsageError
from gnnbench.kernels import sampler

MORE: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"seeds": torch.arange(6)[::2]}, UsageError, "seeds must be contiguous"),
    ({"fanouts": [-2]}, UsageError, "fanout must be at least 1, or -1 .*, it is -2"),
    ({"fanouts": [1 << 31]}, UsageError, "fanout must be below 2\\^31"),
    ({"batch": -1}, UsageError, "batch must be at least 0"),
    ({"indptr": INDPTR[:0]}, UsageError, "indptr must hold num_nodes \\+ 1 offsets"),
    ({"indptr": INDPTR.repeat_interleave(2)[::2]}, UsageError, "indptr must be contiguous"),
    ({"indptr": INDPTR.flip(0).contiguous()}, DataError, "indptr is broken at node 0"),
]
CASES = [*BAD, *MORE]


@pytest.mark.parametrize(("changed", "error", "message"), CASES, ids=[m for _, _, m in CASES])
def test_bad_arguments_are_refused(
    changed: dict[str, Any], error: type[Exception], message: str
) -> None:
    check_bad(sampler.hop_by_hop, changed, error, message)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"dst": torch.tensor([9], dtype=torch.int32)}, "dst holds the id 9"),
        ({"dst": torch.tensor([1])}, "dst must be int32, it is int64"),
        ({"hop": 1 << 16}, "hop must be at least 0 and below 65536"),
        ({"pick": "fisher"}, "pick must be one of reservoir, floyd, .* not 'fisher'"),
    ],
)
def test_bad_hop_arguments_are_refused(changed: dict[str, Any], message: str) -> None:
    how: dict[str, Any] = {"pick": "floyd", "key": KEY, "hop": 0, "batch": 0, **changed}
    dst: Tensor = how.pop("dst", torch.tensor([1], dtype=torch.int32))
    with pytest.raises(UsageError, match=message):
        sampler.sample_hop(INDPTR, INDICES, dst, 2, **how)
