"""A sampler of which one rank does, at one of its draws or when it is made, what it is told to."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import ClassVar

import torch

from gnnbench.core import process_activity
from gnnbench.sampling.hop_by_hop import HopByHop

# "RANK DRAW WHAT", or several parted by ";" of "FANOUTS RANK DRAW WHAT"; any rank but the worker's
# is 1, draw 0 is the making.
FAULT = "GNNBENCH_TEST_FAULT"
SILENCE = "GNNBENCH_TEST_SILENCE"  # seconds, in place of those of a real run
SAMPLER = "faulty=planted_ranks:Faulty"
GIB = 1 << 30

if SILENCE in os.environ:
    process_activity.SILENCE_S = float(os.environ[SILENCE])


def is_told(draw, fanouts):
    """What this process is to do at a draw; "" nothing."""
    own = '"rank": ' in sys.argv[-1]  # of what a follower is told
    for fault in filter(None, os.environ.get(FAULT, "").split(";")):
        *of, rank, number, what = fault.split()
        alike = not of or of == [",".join(map(str, fanouts))]
        if alike and int(rank) == own and int(number) == draw:
            return what
    return ""


def err(what):
    if what == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif what == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif what == "sleeps":
        time.sleep(600)
    elif what == "grows":
        torch.zeros(64 * GIB, dtype=torch.uint8)
    elif what == "memory":
        raise MemoryError("cannot allocate memory: planted, NCCL beside it")


class Faulty(HopByHop):
    """Draws as ``hop-by-hop``."""

    name = "faulty"
    summary = "errs in a test"
    draws: ClassVar[int] = 0

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        err(is_told(0, self.fanouts))

    def draw(self, seeds, **how):
        Faulty.draws += 1
        err(is_told(Faulty.draws, self.fanouts))
        return super().draw(seeds, **how)
