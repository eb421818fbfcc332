"""Checked arguments of a sampler, and checks of a sampler class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gnnbench.core import names
from gnnbench.core.errors import UsageError
from gnnbench.core.option import Option
from gnnbench.datasets.graph import Graph
from gnnbench.kernels.picks import PICKS, PickSpec
from gnnbench.sampling.arguments import Topology
from gnnbench.validation.law import BY_WEIGHT, WITH, WITHOUT

if TYPE_CHECKING:
    from gnnbench.sampling.base import Sampler

TOPOLOGIES = ("gpu", "uva", "cpu")
FRONTIERS = CUMULATIVE, NEW = ("cumulative", "new")
LAWS = (WITHOUT, WITH, BY_WEIGHT)  # of samplers with random numbers of their own


@dataclass(frozen=True)
class Setting:
    """Checked arguments of a sampler (see ``gnnbench.build_sampler``).

    ``graph`` is a stored graph, which another process opens by its path, or the pair (``indptr``,
    ``indices``). ``device`` receives the blocks. ``topology``: ``gpu`` and ``uva`` sample on the
    device, ``cpu`` on the CPU. ``fanouts`` start at the seeds. ``weights`` is float
    ``[num_edges]`` for the law ``weighted``, else None.
    """

    graph: Graph | Topology
    fanouts: tuple[int, ...]
    pick: PickSpec
    frontier: str
    seed: int
    device: torch.device
    topology: str
    with_positions: bool
    weights: Tensor | None = None
    frontier_chosen: bool = True  # by the user; otherwise an adapter chooses its framework's

    @property
    def indptr(self) -> Tensor:
        """int64 ``[num_nodes + 1]``, on the device of the graph argument."""
        return self.graph.indptr if isinstance(self.graph, Graph) else self.graph[0]

    @property
    def indices(self) -> Tensor:
        """int32 or int64 ``[num_edges]``, on the device of the graph argument."""
        return self.graph.indices if isinstance(self.graph, Graph) else self.graph[1]

    @property
    def sampled_on(self) -> torch.device:
        """The device that samples."""
        return torch.device("cpu") if self.topology == "cpu" else self.device


def check_class(cls: type[Sampler]) -> None:
    """Raise ``UsageError`` for an invalid class attribute of a sampler."""
    if cls.law and cls.law not in LAWS:
        raise UsageError(
            f"sampler '{cls.name}' has the law '{cls.law}'; one with"
            f" random numbers of its own has one of: {', '.join(LAWS)}"
        )
    if not isinstance(cls.name, str) or not cls.name:
        raise UsageError(f"{cls.__name__}.name must be a text that is not empty, not {cls.name!r}")
    known = {"devices": ("cpu", "cuda"), "frontiers": FRONTIERS, "picks": PICKS}
    for attribute, values in known.items():
        value = getattr(cls, attribute)
        if isinstance(value, str) or not value or not set(value) <= set(values):
            raise UsageError(
                f"sampler '{cls.name}': {attribute} must be a tuple of {', '.join(values)}, not"
                f" {value!r}"
            )
    if not isinstance(cls.options, Mapping):
        raise UsageError(f"sampler '{cls.name}': options must be a dict of name to Option")
    for key, option in cls.options.items():
        if not isinstance(option, Option) or option.name != key or not str(key).isidentifier():
            raise UsageError(
                f"sampler '{cls.name}': options[{key!r}] must be an Option of that name, which is"
                " a Python identifier"
            )
        if isinstance(option.default, list | dict | set):
            raise UsageError(f"sampler '{cls.name}': the default of '{key}' must be immutable")


def check_options(cls: type[Sampler], options: Mapping[str, object]) -> None:
    """Raise ``UsageError`` for an unknown option or an illegal value."""
    for option, value in options.items():
        if option not in cls.options:
            known = names.suggestion(option, cls.options)
            raise UsageError(f"sampler '{cls.name}' has no option '{option}'; {known}")
        cls.options[option].check(f"sampler '{cls.name}'", value)
