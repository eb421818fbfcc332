"""The device of generators, and generation ahead of use."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch

from gnnbench.core.errors import MissingError, UsageError
from gnnbench.core.missing import Missing
from gnnbench.datasets.generators import parallel
from gnnbench.kernels import missing as native

MANY = parallel.WORTH_A_GPU


@pytest.fixture
def one_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulates a GPU with 100 free bytes."""
    monkeypatch.delenv("GNNBENCH_TWIN_DEVICE", raising=False)
    monkeypatch.setattr(native, "native_missing", lambda device: None)
    monkeypatch.setattr(parallel, "_free_bytes", lambda: 100)


@pytest.mark.parametrize(
    ("edges", "needs", "device"),
    [(MANY, 100, "cuda"), (MANY, 101, "cpu"), (MANY - 1, 0, "cpu"), (0, 0, "cpu")],
)
def test_many_edges_use_a_gpu_with_enough_memory(
    one_gpu: None, edges: int, needs: int, device: str
) -> None:
    assert parallel.generator_device(edges, needs) == device


def test_generator_device_can_be_set_by_variable(
    one_gpu: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for device in ("cpu", "cuda"):
        monkeypatch.setenv("GNNBENCH_TWIN_DEVICE", device)
        assert parallel.generator_device(MANY, 50) == parallel.generator_device() == device
    monkeypatch.setenv("GNNBENCH_TWIN_DEVICE", "gpu")
    with pytest.raises(UsageError, match="it is cpu or cuda"):
        parallel.generator_device()
    monkeypatch.setenv("GNNBENCH_TWIN_DEVICE", "cuda")
    monkeypatch.setattr(native, "native_missing", lambda device: Missing("no GPU", "buy one"))
    with pytest.raises(MissingError, match="no GPU; buy one"):
        parallel.generator_device()


def test_generator_uses_the_cpu_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GNNBENCH_TWIN_DEVICE", raising=False)
    monkeypatch.setattr(native, "native_missing", lambda device: Missing("no GPU", "buy one"))
    assert parallel.generator_device(MANY) == "cpu"


def test_generating_restores_torch_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GNNBENCH_TWIN_DEVICE", "cpu")
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 5})
    before = torch.get_num_threads()
    with pytest.raises(KeyError), parallel.generating(MANY) as device:
        assert (device, torch.get_num_threads()) == ("cpu", 3)
        raise KeyError
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("threads", [1, 3])
def test_compute_ahead_keeps_order_and_is_bounded(threads: int) -> None:
    started = 0

    def makers() -> Iterator[Callable[[], int]]:
        nonlocal started
        for i in range(20):
            started += 1
            yield lambda i=i: i * i

    for used, value in enumerate(parallel.compute_ahead(makers(), threads)):
        assert value == used * used and started <= used + 1 + threads
    assert started == 20 and list(parallel.compute_ahead([])) == []


def test_compute_ahead_raises_errors_in_order() -> None:
    results = parallel.compute_ahead([lambda: 1, lambda: 1 // 0, lambda: 3])
    assert next(results) == 1
    with pytest.raises(ZeroDivisionError):
        next(results)
