"""A sampler that raises an error for int32 ids, or ends its process, and is broken afterwards."""

import faulthandler
import os
import signal
from dataclasses import replace

import torch

from gnnbench.sampling.hop_by_hop import HopByHop
from gnnbench.sampling.native import native
from gnnbench.systems.baseline import BASELINE

BROKEN = []  # once it has raised


class Fragile(HopByHop):
    name = "fragile"

    def sample(self, *args, **kwargs):
        if BROKEN or self.indices.dtype == torch.int32:
            if os.environ["FRAGILE"] == "ends":
                faulthandler.disable()  # it would print what is expected
                os.kill(os.getpid(), signal.SIGSEGV)
            BROKEN.append(True)
            raise RuntimeError("logic error")
        return super().sample(*args, **kwargs)


SYSTEM = replace(BASELINE, name="fragile", summary="breaks", sampler=native(Fragile))
