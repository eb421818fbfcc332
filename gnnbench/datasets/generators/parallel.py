"""Where and by how many threads drawn data are made: the same bits on every device and for any
number of them."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from gnnbench.core.cgroups import usable_cores
from gnnbench.core.errors import MissingError, UsageError

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

T = TypeVar("T")
WORTH_A_GPU = 1 << 22  # edges; fewer are made before CUDA has started
_PIECE_BYTES = 1 << 26


def gpu_bytes(nodes: int, edges: int) -> int:
    """What a GPU must have free for a graph to be made there."""
    return 24 * edges + 160 * nodes


def making_device(edges: int = 0, needs: int = 0) -> str:
    """Where a graph is made: as ``GNNBENCH_TWIN_DEVICE`` says, ``cpu`` or ``cuda``; where it says
    nothing, on the GPU if there is one with ``needs`` bytes free and the edges are many.

    Raises ``UsageError`` for another value, ``MissingError`` where there is no such device.
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
def making(edges: int = 0, needs: int = 0) -> Iterator[str]:
    """The device of :func:`making_device`, lent with all cores: torch has its threads back in the
    end, and the GPU what torch kept of its memory."""
    import torch

    device = making_device(edges, needs)
    with all_cores():
        try:
            yield device
        finally:
            if device == "cuda":
                torch.cuda.empty_cache()


@contextmanager
def all_cores() -> Iterator[None]:
    """Torch's operators run on all usable cores, wherever it starts with fewer threads."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(usable_cores())
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def ahead(makers: Iterable[Callable[[], T]], threads: int = 1) -> Iterator[T]:
    """What each of them makes, in order, ``threads`` of them at work ahead of what is used."""
    with ThreadPoolExecutor(threads) as pool:
        coming: deque[Future[T]] = deque()
        for make in makers:
            coming.append(pool.submit(make))
            if len(coming) > threads:
                yield coming.popleft().result()
        while coming:
            yield coming.popleft().result()


def host_pieces(tensor: Tensor) -> Iterator[np.ndarray]:
    """A tensor of one dimension piece by piece; one of a GPU is never on the host as a whole, and
    the next piece is copied while the last one is used."""
    if tensor.device.type == "cpu":
        yield tensor.numpy()
        return
    for piece in ahead(part.cpu for part in tensor.split(_PIECE_BYTES // tensor.element_size())):
        yield piece.numpy()
