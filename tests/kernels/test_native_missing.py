"""Requirements of stages that use our own operators."""

import pytest
import torch

from gnnbench.kernels.missing import native_missing


@pytest.mark.parametrize(
    ("version", "fits"),
    [("2.0.1+cu117", False), ("2.10.0", False), ("2.11.0+cu130", True), ("3.0.0a0+git1", True)],
)
def test_torch_must_have_the_abi_of_the_library(version, fits, monkeypatch):
    monkeypatch.setattr(torch, "__version__", version)
    missing = native_missing()
    if fits:
        assert missing is None or "torch" not in missing.reason
    else:
        assert missing.reason == f"the native library needs torch 2.11, this is {version}"
