"""``zero-copy``: PyTorch-Direct, a GPU that reads feature rows out of host memory by itself.

Whole lines of it, whatever the rows' width, by a producer's process that MPS may hold to a share of
the GPU (``schedule.share``); the other process trains. Sampler and layers are DGL's, as the paper
has them. A CPU has no link to read over: there the cores gather.
"""

from __future__ import annotations

from dataclasses import replace

from gnnbench.distributed.producer_consumer import ProducerConsumer
from gnnbench.features.spec import Host, Uva
from gnnbench.systems.baseline import BASELINE

ZERO_COPY = replace(
    BASELINE,
    name="zero-copy",
    summary="PyTorch-Direct: the GPU reads rows by whole lines, in a process next to the trainer's",
    paper="Min et al., Large Graph Convolutional Network Training with GPU-Oriented Data"
    " Communication Architecture, PVLDB 14(11), 2021",
    features=Uva(access="aligned"),
    on_cpu=(Host(),),
    schedule=ProducerConsumer(),
)
