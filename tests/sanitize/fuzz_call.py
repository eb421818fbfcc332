"""Form, random values and comparisons of operator calls.

Values are small whole numbers, so that sums are exact in every dtype.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

FLOATS = (torch.float32, torch.float64)
VALUES = (*FLOATS, torch.float16, torch.bfloat16)
IDS = (torch.int32, torch.int64)
TWO_32 = 1 << 32


@dataclass
class Call:
    """Arguments in the order of the schema, and a check of the result."""

    args: list[Any]
    check: Callable[[Any], None]
    facts: dict[str, Any] = field(default_factory=dict)


def equal(got: Tensor, expected: Any, dtype: torch.dtype | None = None) -> None:
    """Equal in every entry."""
    expected = torch.as_tensor(expected)
    assert dtype is None or got.dtype == dtype, got.dtype
    assert list(got.shape) == list(expected.shape), (got.shape, expected.shape)
    assert torch.equal(got.double(), expected.double()), (got, expected)


def close(got: Tensor, expected: Tensor) -> None:
    """Equal up to the rounding of the result's dtype."""
    precision = {torch.float64: 1e-12, torch.float32: 2e-5}.get(got.dtype, 2e-2)
    assert list(got.shape) == list(expected.shape), (got.shape, expected.shape)
    torch.testing.assert_close(got.double(), expected.double(), rtol=precision, atol=precision)


def whole(r: random.Random, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """Whole numbers from -3 to 3."""
    count = int(np.prod(shape))
    return torch.tensor([r.randint(-3, 3) for _ in range(count)]).reshape(*shape).to(dtype)


def ids_below(r: random.Random, bound: int, count: int, dtype: torch.dtype) -> Tensor:
    """Random ids below a bound; none if the bound is 0."""
    return torch.tensor([r.randrange(bound) for _ in range(count if bound else 0)], dtype=dtype)
