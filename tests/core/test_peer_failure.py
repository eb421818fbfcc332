"""Distinguishes failures of a process from those caused by a failed peer."""

import pickle

import pytest
import torch
import torch.distributed as dist

from gnnbench.core.errors import GpuMemoryError, HostMemoryError
from gnnbench.core.peer_failure import LostError, is_late, is_lost
from gnnbench.distributed.remote_failure import RemoteFailure
from gnnbench.harness.failures import from_exception

CLOSED = RuntimeError(
    "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer [::1]:7"
)
LATE = RuntimeError("[gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 3000ms for recv")


@pytest.mark.parametrize(
    "error",
    [CLOSED, LATE, LostError("rank 2 has ended"), dist.DistBackendError("NCCL communicator was"
    " aborted on rank 0."), dist.DistStoreError("wait timeout after 2000ms, keys: /0"),
    RuntimeError("Application timeout caused pair closure")],
)  # fmt: skip
def test_connection_errors_are_lost_peers(error):
    assert is_lost(error)
    assert is_lost(pickle.loads(pickle.dumps(error)))
    assert is_lost(RemoteFailure.by(error).exception())
    assert is_late(error) == any(w in str(error) for w in ("Timed out", "timeout"))


def test_unpicklable_error_is_recognized_by_its_text():
    failure = RemoteFailure(None, "DistBackendError: NCCL communicator was aborted on rank 1.")
    assert is_lost(failure.exception())
    assert not is_lost(RemoteFailure(None, "ValueError: no NCCL").exception())


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (dist.DistBackendError("NCCL error in: NCCLUtils.cpp:93, unhandled cuda error, NCCL version"
         " 2.27.3\nLast error:\nCuda failure 2 'out of memory'"), "oom_gpu"),
        (torch.OutOfMemoryError("CUDA out of memory. NCCL has 2 GiB of it"), "oom_gpu"),
        (RuntimeError("[gloo/transport/tcp/buffer.cc:9] DefaultCPUAllocator: can't allocate memory:"
         " you tried to allocate 8 bytes"), "oom_host"),
        (GpuMemoryError("NCCL finds no room on the GPU"), "oom_gpu"),
        (HostMemoryError("gloo/: no room on the host"), "oom_host"),
        (MemoryError("NCCL"), "oom_host"),
        (ValueError("no Connection to gloo/ is a value"), "crash"),
        (RuntimeError("a Dist of NCCL onnections"), "crash"),
    ],
)  # fmt: skip
def test_memory_errors_are_not_lost_peers(error, status):
    assert not is_lost(error)
    assert from_exception(error).status == status
