"""Every operator runs on the device of its tensors, for any current device, and in a new thread.

On a machine with several GPUs the last one runs operators while the first is current; the test ids
name the device.
"""

import threading
from typing import Any

import pytest
import torch
from device_calls import (
    CALLS,
    CSC,
    FANOUTS,
    FLOYD,
    LAST,
    PICK,
    SEEDS,
    WHERE,
    Call,
    ops,
)
from torch import Tensor

from gnnbench.core.minibatch import MiniBatch
from gnnbench.kernels.library import load_native
from gnnbench.kernels.sampler import mini_batch
from gnnbench.validation.same_work import same_work

pytestmark = pytest.mark.gpu


def flat_tensors(outputs: Any) -> list[Tensor]:
    return [outputs] if isinstance(outputs, Tensor) else list(outputs)


def in_a_new_thread(call: Call, device: torch.device) -> Any:
    """The result of ``call`` in a new thread, with device 0 current before and after."""
    outputs: list[Any] = []

    def run() -> None:
        try:
            assert torch.cuda.current_device() == 0
            outputs.append(call(device))
            torch.cuda.synchronize(device)
            assert torch.cuda.current_device() == 0
        except BaseException as error:
            outputs.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if isinstance(outputs[0], BaseException):
        raise outputs[0]
    return outputs[0]


def test_every_operator_has_a_call():
    load_native()
    registered = torch._C._dispatch_get_registrations_for_dispatch_key("CUDA")
    ours = {name.removeprefix("gnnbench::") for name in registered if name.startswith("gnnbench::")}
    assert ours == set(CALLS)


@pytest.mark.parametrize("name", [f"{name} on {WHERE}" for name in sorted(CALLS)])
def test_operator_runs_on_its_tensors_device_in_a_new_thread(name):
    call = CALLS[name.split()[0]]
    device = torch.device("cuda", LAST)
    got = in_a_new_thread(call, device)
    expected = call(torch.device("cpu"))
    if isinstance(expected, MiniBatch):
        assert same_work(expected, got) is None
    elif isinstance(expected, dict):
        assert got == expected
    else:
        pairs = list(zip(flat_tensors(got), flat_tensors(expected), strict=True))
        for ours, right in pairs:
            assert ours.device == device
            assert ours.dtype == right.dtype
            assert torch.equal(ours.cpu(), right)


def test_concurrent_threads_do_not_mix_sizes():
    """Each thread has its own mailbox, so sizes never reach a batch of another thread."""
    device = torch.device("cuda", LAST)
    graph = CSC.indptr.to(device), CSC.indices.to(device)
    failures: list[BaseException] = []

    def run(which: int) -> None:
        try:
            with torch.cuda.device(device), torch.cuda.stream(torch.cuda.Stream(device)):
                for batch in range(100):
                    seeds = SEEDS[which : which + 50 + 10 * which].to(device)
                    args = (FANOUTS, *PICK, "cumulative", 7, batch, True, [])
                    flat = ops().fused_map(*graph, seeds, *args)
                    args = (FANOUTS, *PICK, "cumulative", 7, batch, True)
                    right = ops().hop_by_hop(*graph, seeds, *args)
                    ours, theirs = (
                        mini_batch(t, seeds, FLOYD, "cumulative", True) for t in (flat, right)
                    )
                    assert same_work(theirs, ours) is None
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(which,)) for which in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
