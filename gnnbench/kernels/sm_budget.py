"""A share of a GPU's multiprocessors for one stream."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import torch

from gnnbench.core.errors import UnsupportedError
from gnnbench.kernels.library import native_operators


class LimitedStream(NamedTuple):
    """A stream, and the number of multiprocessors on which its kernels run."""

    stream: torch.cuda.Stream
    sms: int


@cache  # contexts last as long as the process
def limited_stream(device: torch.device, sms: int) -> LimitedStream:
    """A stream of ``device`` whose kernels run on ``sms`` of its multiprocessors (a green context).

    The driver rounds up, to a multiple of 8 on compute capability 9.0; other streams still run on
    all of them. Raises ``UsageError`` for less than 1 or more than the device has,
    ``UnsupportedError`` where the driver has no green contexts (before CUDA 12.5) or makes none.
    """
    with native_operators() as ops:
        result = ops.limited_stream(torch.empty(0, device=device), sms)
    error, stream, granted = result.tolist()
    if error:
        raise UnsupportedError(
            f"the driver cannot give a stream {sms} multiprocessors (CUDA error {error}); take"
            " schedule.sms=0, or a driver of CUDA 12.5 or later"
        )
    return LimitedStream(torch.cuda.ExternalStream(stream, device), granted)
