"""Environment variables that all workers have, whatever framework they run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gnnbench.harness.interpreter import Environments

MARK = "GNNBENCH_WORKER"  # variable that all descendants of a worker inherit
WORKER_ENVIRONMENT = {
    # glibc returns large blocks to the kernel at once, and every batch then pays page faults for
    # its feature rows and gradients again. Workers keep what they have touched.
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
    # A thread that waits for others sleeps: one that spins keeps a core from those it waits for
    # where another process runs, and a call of 4 ms takes 50. libgomp (torch, DGL and our library
    # share the one that torch brings) reads the first two, LLVM's and Intel's the first and last.
    "OMP_WAIT_POLICY": "PASSIVE",
    "GOMP_SPINCOUNT": "0",
    "KMP_BLOCKTIME": "0",
}


def worker_variables(
    environments: Environments, env: str, threads: int, mark: str
) -> dict[str, str]:
    """Return all environment variables of a worker."""
    return {
        **environments.variables(env),
        **WORKER_ENVIRONMENT,
        "OMP_NUM_THREADS": str(threads),
        MARK: mark,
    }


def overridden_environment() -> dict[str, str]:
    """Return the variables that the user set to another value, which workers do not get."""
    return {
        name: os.environ[name]
        for name, value in WORKER_ENVIRONMENT.items()
        if os.environ.get(name, value) != value
    }
