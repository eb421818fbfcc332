import signal

import pytest
import torch

from gnnbench.core.errors import (
    DataError,
    GpuMemoryError,
    HostMemoryError,
    MissingError,
    NoGraphError,
    UnsupportedError,
)
from gnnbench.harness import failures
from gnnbench.schema import STATUSES


@pytest.mark.parametrize(
    "error,status",
    [
        (MemoryError(), "oom_host"),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), "oom_host"),
        (RuntimeError("std::bad_alloc"), "oom_host"),
        (RuntimeError("CUDA out of memory. Tried to allocate"), "oom_gpu"),
        (MissingError("gone; get it"), "missing_dep"),
        (DataError("broken; get it again"), "missing_data"),
        (NoGraphError("nothing here; prepare it"), "missing_data"),
        (UnsupportedError("cannot"), "unsupported"),
        (ZeroDivisionError("by zero"), "crash"),
        (ValueError(), "crash"),
        (ImportError("libx.so: cannot open shared object file"), "missing_dep"),
        (ImportError("libx.so: failed to map segment from shared object"), "oom_host"),
        (MissingError("the library does not load (cannot allocate memory); mend it"), "oom_host"),
        (HostMemoryError("too large; take less"), "oom_host"),
        (GpuMemoryError("cudaHostAlloc: not enough memory"), "oom_gpu"),
    ],
)
def test_status_of_exceptions(error, status):
    failure = failures.from_exception(error)
    assert failure.status == status
    assert status in STATUSES
    assert failure.reason
    assert "\n" not in failure.reason


def test_failed_shared_memory_is_host_oom():
    with pytest.raises(RuntimeError) as raised:
        torch.UntypedStorage._new_shared(1 << 46)
    assert failures.from_exception(raised.value).status == "oom_host"


@pytest.mark.parametrize(
    "code,kills,log,status,words",
    [
        (-signal.SIGKILL, 1, "", "oom_host", "memory"),
        (-signal.SIGKILL, 0, "", "crash", "SIGKILL"),
        (-signal.SIGABRT, 0, "terminate called ... std::bad_alloc", "oom_host", "memory"),
        (-signal.SIGABRT, 0, "assertion failed", "crash", "SIGABRT"),
        (-signal.SIGSEGV, 3, "", "crash", "SIGSEGV"),
        (3, 0, "", "crash", "code 3"),
    ],
)
def test_status_of_process_deaths(tmp_path, code, kills, log, status, words):
    path = tmp_path / "w.log"
    path.write_text(log)
    failure = failures.from_death(code, kills, path)
    assert failure.status == status
    assert words in failure.reason
    assert str(tmp_path) not in failure.reason


def test_death_without_a_log_is_a_crash(tmp_path):
    assert failures.from_death(-9, 0, tmp_path / "none").status == "crash"


def test_failures_are_documented_statuses():
    assert set(failures.FAILED) < set(STATUSES)


def test_torch_out_of_memory_errors_are_gpu_oom():
    torch = pytest.importorskip("torch")
    error = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has ...")
    assert failures.from_exception(error).status == "oom_gpu"
    assert failures.from_exception(RuntimeError("CUDA error: out of memory")).status == "oom_gpu"


def test_memory_error_messages_are_kept():
    for error, status in ((GpuMemoryError, "oom_gpu"), (HostMemoryError, "oom_host")):
        failure = failures.from_exception(error("it does not fit; take less"))
        assert (failure.status, failure.reason) == (status, "it does not fit; take less")
