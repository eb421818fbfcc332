"""Facts that torch's DataLoader does not pass to the sampler: batch number and calling loader."""

from __future__ import annotations

import sys
from types import CodeType, FrameType, FunctionType

from torch.utils.data import get_worker_info
from torch.utils.data._utils import worker as torch_worker

from gnnbench.core.errors import UnsupportedError

_WORKER_LOOP: CodeType = torch_worker._worker_loop.__code__


def task_number() -> int:
    """Number of the worker's current task in its pass over the data, in a worker process.

    Torch numbers tasks from 0 in each pass, over all workers, in the order of the yielded batches.
    The number is a local variable of the worker's loop. Raises ``UnsupportedError`` outside it.
    """
    frame = _caller(_WORKER_LOOP)
    number = None if frame is None else frame.f_locals.get("idx")
    if not isinstance(number, int):
        raise UnsupportedError(
            "the number of the batch is unknown in this worker process: the sampler must be called"
            " by torch's DataLoader, from the worker's main thread; use num_workers=0 otherwise"
        )
    return number


def batch_number_in_shard(num_batches: int) -> int:
    """Number of the worker's current batch if each worker has a contiguous shard of batches.

    The first ``num_batches % num_workers`` workers have one batch more than the others.
    """
    info = get_worker_info()
    assert info is not None
    size, remainder = divmod(num_batches, info.num_workers)
    first = info.id * size + min(info.id, remainder)
    return first + task_number() // info.num_workers


def caller_of(method: FunctionType) -> object:
    """The ``self`` of the nearest caller that executes ``method``, or None."""
    frame = _caller(method.__code__)
    return None if frame is None else frame.f_locals.get("self")


def _caller(code: CodeType) -> FrameType | None:
    """The nearest frame of this thread that executes ``code``, or None."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return frame
