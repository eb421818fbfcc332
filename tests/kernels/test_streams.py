"""State kept across batches is synchronized only when the stream changes."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gnnbench.kernels.streams import StreamOrder


class FakeStream:
    def __init__(self, handle: int, log: list[str]) -> None:
        self.handle = handle
        self._log = log

    def wait_stream(self, other: "FakeStream") -> None:
        self._log.append(f"{self.handle} waits for {other.handle}")


def test_synchronizes_when_the_stream_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[str] = []
    current = [FakeStream(0, log)]
    monkeypatch.setattr(
        torch._C, "_cuda_getCurrentRawStream", lambda device: current[0].handle, raising=False
    )
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: current[0])
    state: Any = SimpleNamespace(
        is_cuda=True,
        get_device=lambda: 0,
        record_stream=lambda stream: log.append(f"used on {stream.handle}"),
    )
    order = StreamOrder(state)
    order.enter(state)
    assert log == []
    current[0] = FakeStream(7, log)
    order.enter(state)
    order.enter(state)
    assert log == ["7 waits for 0", "used on 7"]
    current[0] = FakeStream(0, log)
    order.enter(state)
    assert log[2:] == ["0 waits for 7", "used on 0"]


def test_cpu_needs_no_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: pytest.fail("queried"))
    state = torch.zeros(3)
    StreamOrder(state).enter(state)
