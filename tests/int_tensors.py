"""Short tensors of ids and offsets."""

from __future__ import annotations

import torch
from torch import Tensor


def ints(*values: int) -> Tensor:
    """The values as int32."""
    return torch.tensor(values, dtype=torch.int32)
