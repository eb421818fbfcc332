"""Feature stage: a batch's input nodes to feature rows on the compute device."""

from gnnbench.features.foreign_spec import BoltGather, DglGather, PygFilter
from gnnbench.features.sharded_spec import Sharded
from gnnbench.features.spec import Cache, Gpu, Host, Match, StoreSpec, Uva, Window

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
