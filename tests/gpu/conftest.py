"""Both devices' operators, called alike."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch


@pytest.fixture(scope="session")
def ops() -> Any:
    """The operators themselves, so that both devices are called alike."""
    from gnnbench.kernels.library import load_native

    load_native()
    return torch.ops.gnnbench


@pytest.fixture
def gpu() -> Any:
    """Puts a tensor on the GPU."""
    return SimpleNamespace(put=lambda t: t.to("cuda"), sync=torch.cuda.synchronize)
