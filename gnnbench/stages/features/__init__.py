"""Feature stage: a batch's input nodes to feature rows on the compute device."""

from gnnbench.stages.features.sharded_spec import Sharded
from gnnbench.stages.features.spec import (
    BoltGather,
    Cache,
    DglGather,
    Gpu,
    Host,
    Match,
    PygFilter,
    StoreSpec,
    Uva,
    Window,
)

__all__ = [
    "BoltGather",
    "Cache",
    "DglGather",
    "Gpu",
    "Host",
    "Match",
    "PygFilter",
    "Sharded",
    "StoreSpec",
    "Uva",
    "Window",
]
