"""What ``baseline`` takes for settings, device by device; no GPU is needed to refuse."""

import pytest
import torch

from gnnbench.cell import Cell
from gnnbench.errors import UnsupportedError, UsageError
from gnnbench.systems import native
from gnnbench.systems.baseline import Baseline


def baseline(graph, device="cpu", **changes):
    return Baseline(Cell("test", "baseline", graph.name, "gcn", device=device, **changes), graph)


@pytest.mark.parametrize(
    ("device", "options", "error", "words"),
    [
        ("cpu", {"features": "uva"}, UnsupportedError, "--device cuda"),
        ("cpu", {"features": "gpu"}, UnsupportedError, "--device cuda"),
        ("cuda", {"features": "disk"}, UsageError, "host, gpu, uva"),
        ("cuda", {"feature": "gpu"}, UsageError, "features"),
    ],
)
def test_places_of_features(small_graph, device, options, error, words):
    with pytest.raises(error, match=words):
        baseline(small_graph, device, options=options)


def test_the_default_pick_is_dgls_on_each_device(small_graph):
    assert baseline(small_graph).pick == "floyd"
    assert baseline(small_graph, "cuda").pick == "reservoir"
    assert baseline(small_graph, "cuda", pick="floyd").pick == "floyd"


@pytest.mark.parametrize(
    ("info", "usable", "gpu", "words"),
    [
        ({"cpu_built": False, "cuda_built": False}, False, False, "native library is not built"),
        ({"cpu_built": True, "cuda_built": False}, False, True, "CUDA library is not built"),
        ({"cpu_built": True, "cuda_built": True}, False, True, "without CUDA"),
        ({"cpu_built": True, "cuda_built": True}, True, False, "no CUDA device"),
        ({"cpu_built": True, "cuda_built": True}, True, True, ""),
    ],
)
def test_what_a_gpu_takes(monkeypatch, info, usable, gpu, words):
    monkeypatch.setattr(native, "native_info", lambda: info)
    monkeypatch.setattr(native, "has_cuda_library", lambda: usable)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
    missing = Baseline.missing("cuda")
    assert (words in missing.reason and missing.fix) if words else missing is None
