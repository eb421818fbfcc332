"""Feature stage: a batch's input nodes to feature rows on the compute device."""

from gnnbench.stages.features.overlap import Match, Window
from gnnbench.stages.features.spec import DglGather, Gpu, Host, PygFilter, StoreSpec, Uva

__all__ = ["DglGather", "Gpu", "Host", "Match", "PygFilter", "StoreSpec", "Uva", "Window"]
