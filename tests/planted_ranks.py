"""A sampler that fails on one rank, at a chosen draw or in its constructor."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import ClassVar

import torch

from gnnbench.sampling.hop_by_hop import HopByHop

# "RANK DRAW FAULT", or several "FANOUTS RANK DRAW FAULT" separated by ";". RANK is 0 for the worker
# and 1 for all other ranks; DRAW 0 is the constructor.
FAULT = "GNNBENCH_TEST_FAULT"
SAMPLER = "faulty=planted_ranks:Faulty"
GIB = 1 << 30


def planned_fault(draw, fanouts):
    """Return the fault of this process at a draw, or ""."""
    is_other_rank = '"rank": ' in sys.argv[-1]  # an argument of ranks above 0
    for fault in filter(None, os.environ.get(FAULT, "").split(";")):
        *only, rank, number, kind = fault.split()
        applies = not only or only == [",".join(map(str, fanouts))]
        if applies and int(rank) == is_other_rank and int(number) == draw:
            return kind
    return ""


def fail(kind):
    if kind == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif kind == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif kind == "sleeps":
        time.sleep(600)
    elif kind == "grows":
        torch.zeros(64 * GIB, dtype=torch.uint8)
    elif kind == "memory":
        raise MemoryError("cannot allocate memory: planted, with NCCL")


class Faulty(HopByHop):
    """Samples as ``hop-by-hop``, except at the planned fault."""

    name = "faulty"
    summary = "errs in a test"
    draws: ClassVar[int] = 0

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        fail(planned_fault(0, self.fanouts))

    def draw(self, seeds, **how):
        Faulty.draws += 1
        fail(planned_fault(Faulty.draws, self.fanouts))
        return super().draw(seeds, **how)
