"""Which GPUs NVML is asked about: those that CUDA gives this process."""

import pytest

from gnnbench.core.nvml import visible_gpus


class FakeNvml:
    """Four GPUs whose handles are their indices."""

    class NVMLError(Exception):
        """An unknown GPU."""

    def nvmlDeviceGetCount(self):
        return 4

    def nvmlDeviceGetHandleByIndex(self, index):
        if index >= 4:
            raise self.NVMLError
        return index

    def nvmlDeviceGetHandleByUUID(self, uuid):
        if not uuid.startswith("GPU-"):
            raise self.NVMLError
        return int(uuid.removeprefix("GPU-"))


@pytest.mark.parametrize(
    ("variable", "handles"),
    [
        (None, [0, 1, 2, 3]),
        ("2", [2]),
        ("3,1", [3, 1]),
        ("GPU-1, 0", [1, 0]),
        ("", []),
        ("1,9,2", [1]),
        ("1,-1,2", [1]),
    ],
)
def test_only_gpus_that_cuda_gives_the_process_are_queried(monkeypatch, variable, handles):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if variable is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", variable)
    assert visible_gpus(FakeNvml()) == handles
