"""Feature stage: a batch's input nodes to feature rows on the compute device."""

from gnnbench.stages.features.spec import DglGather, Gpu, Host, PygFilter, StoreSpec, Uva

__all__ = ["DglGather", "Gpu", "Host", "PygFilter", "StoreSpec", "Uva"]
