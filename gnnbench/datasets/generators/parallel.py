"""Device and threads of the generators; the bits do not depend on either."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from gnnbench.core.cgroups import usable_cores
from gnnbench.core.errors import MissingError, UsageError
from gnnbench.schema.arrays import Array

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")
WORTH_A_GPU = 1 << 22  # edges; fewer are generated before CUDA has started
_CHUNK_BYTES = 1 << 26


def gpu_bytes(nodes: int, edges: int) -> int:
    """GPU memory that generating a graph takes."""
    return 24 * edges + 160 * nodes


def generator_device(edges: int = 0, needs: int = 0) -> str:
    """Device that generates a graph: ``GNNBENCH_TWIN_DEVICE`` (``cpu`` or ``cuda``), else the GPU
    for many edges if it has ``needs`` bytes free, else the CPU.

    Raises ``UsageError`` for another value, ``MissingError`` if the device does not exist.
    """
    from gnnbench.kernels.missing import native_missing

    device = os.environ.get("GNNBENCH_TWIN_DEVICE")
    if device is None:
        many = edges >= WORTH_A_GPU and native_missing("cuda") is None
        return "cuda" if many and (not needs or _free_bytes() >= needs) else "cpu"
    if device not in ("cpu", "cuda"):
        raise UsageError(f"GNNBENCH_TWIN_DEVICE is '{device}'; it is cpu or cuda")
    if device == "cuda" and (missing := native_missing(device)) is not None:
        raise MissingError(f"GNNBENCH_TWIN_DEVICE=cuda, but {missing.reason}; {missing.fix}")
    return device


def _free_bytes() -> int:
    import torch

    return int(torch.cuda.mem_get_info()[0])


@contextmanager
def generating(edges: int = 0, needs: int = 0) -> Iterator[str]:
    """Yield :func:`generator_device` while torch uses all cores; empties the GPU's cache in the
    end."""
    import torch

    device = generator_device(edges, needs)
    with all_cores():
        try:
            yield device
        finally:
            if device == "cuda":
                torch.cuda.empty_cache()


@contextmanager
def all_cores() -> Iterator[None]:
    """Let torch's operators use all usable cores, then restore its number of threads."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(usable_cores())
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def compute_ahead(tasks: Iterable[Callable[[], T]], threads: int = 1) -> Iterator[T]:
    """Results of the tasks in order, computed in ``threads`` threads ahead of the consumer."""
    with ThreadPoolExecutor(threads) as pool:
        pending: deque[Future[T]] = deque()
        for task in tasks:
            pending.append(pool.submit(task))
            if len(pending) > threads:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


def host_chunks(tensor: Tensor) -> Iterator[Array]:
    """Chunks of a one-dimensional tensor on the host.

    A tensor of the GPU is copied chunk by chunk, the next one while the last one is used.
    """
    if tensor.device.type == "cpu":
        yield tensor.numpy()
        return
    chunks = tensor.split(_CHUNK_BYTES // tensor.element_size())
    for chunk in compute_ahead(chunk.cpu for chunk in chunks):
        yield chunk.numpy()


ahead = compute_ahead  # until all callers use the new name
