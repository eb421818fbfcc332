"""GPU-only aggregations raise an error for tensors on the host."""

import pytest
import torch
from ops_blocks import block_of

from gnnbench.core.errors import UsageError
from gnnbench.kernels.aggregate_memory_aware import (
    aggregate_memory_aware,
    aggregate_memory_aware_warp,
    attend_memory_aware,
    attend_memory_aware_warp,
)
from gnnbench.kernels.aggregate_tuned import aggregate_tuned

BLOCK = block_of([[1], [0]], 2)


@pytest.mark.parametrize(
    "call, name",
    [
        (lambda: aggregate_tuned(BLOCK, torch.ones(2, 3), "sum"), "tuned"),
        (lambda: aggregate_memory_aware(BLOCK, torch.ones(2, 3), "sum"), "memory-aware"),
        (
            lambda: attend_memory_aware(
                BLOCK, torch.ones(2, 2, 3), torch.ones(2, 2), torch.ones(2, 2), 0.2
            ),
            "memory-aware",
        ),
        (lambda: aggregate_memory_aware_warp(BLOCK, torch.ones(2, 3), "sum"), "memory-aware-warp"),
        (
            lambda: attend_memory_aware_warp(
                BLOCK, torch.ones(2, 2, 3), torch.ones(2, 2), torch.ones(2, 2), 0.2
            ),
            "memory-aware-warp",
        ),
    ],
)
def test_host_tensors_are_refused(call, name):
    with pytest.raises(UsageError, match=f"the '{name}' aggregation runs on a GPU; move"):
        call()
