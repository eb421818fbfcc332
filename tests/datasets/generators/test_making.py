"""Where drawn data are made."""

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
    """A GPU with 100 bytes free."""
    monkeypatch.delenv("GNNBENCH_TWIN_DEVICE", raising=False)
    monkeypatch.setattr(native, "native_missing", lambda device: None)
    monkeypatch.setattr(parallel, "_free_bytes", lambda: 100)


@pytest.mark.parametrize(
    ("edges", "needs", "device"),
    [(MANY, 100, "cuda"), (MANY, 101, "cpu"), (MANY - 1, 0, "cpu"), (0, 0, "cpu")],
)
def test_many_edges_are_made_on_a_gpu_with_room(
    one_gpu: None, edges: int, needs: int, device: str
) -> None:
    assert parallel.generator_device(edges, needs) == device


def test_a_device_may_be_asked_for_by_name(one_gpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_without_a_gpu_all_is_made_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GNNBENCH_TWIN_DEVICE", raising=False)
    monkeypatch.setattr(native, "native_missing", lambda device: Missing("no GPU", "buy one"))
    assert parallel.generator_device(MANY) == "cpu"


def test_torch_has_its_threads_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GNNBENCH_TWIN_DEVICE", "cpu")
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 5})
    before = torch.get_num_threads()
    with pytest.raises(KeyError), parallel.generating(MANY) as device:
        assert (device, torch.get_num_threads()) == ("cpu", 3)
        raise KeyError
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("threads", [1, 3])
def test_what_is_made_ahead_is_in_order_and_not_too_far(threads: int) -> None:
    asked = 0

    def makers() -> Iterator[Callable[[], int]]:
        nonlocal asked
        for i in range(20):
            asked += 1
            yield lambda i=i: i * i

    for used, value in enumerate(parallel.compute_ahead(makers(), threads)):
        assert value == used * used and asked <= used + 1 + threads
    assert asked == 20 and list(parallel.compute_ahead([])) == []


def test_a_fault_of_what_is_made_ahead_comes_in_its_turn() -> None:
    made = parallel.compute_ahead([lambda: 1, lambda: 1 // 0, lambda: 3])
    assert next(made) == 1
    with pytest.raises(ZeroDivisionError):
        next(made)
