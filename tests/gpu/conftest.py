"""Fixtures to call the operators of both devices in the same way."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from two_processes import planted, two  # noqa: F401


@pytest.fixture(scope="session")
def ops() -> Any:
    """The registered operators, called in the same way for both devices."""
    from gnnbench.kernels.library import load_native

    load_native()
    return torch.ops.gnnbench


@pytest.fixture
def gpu() -> Any:
    """Copies a tensor to the GPU."""
    return SimpleNamespace(put=lambda t: t.to("cuda"), sync=torch.cuda.synchronize)
