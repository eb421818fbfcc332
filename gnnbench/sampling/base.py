"""What a sampler is: seeds of a batch in, a mini-batch of blocks out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from gnnbench.core import names
from gnnbench.core.errors import UnsupportedError, UsageError
from gnnbench.core.minibatch import MiniBatch
from gnnbench.core.option import Option
from gnnbench.datasets.graph import Graph
from gnnbench.kernels import rng
from gnnbench.kernels.locked import LockedTensor
from gnnbench.kernels.picks import PICKS, PickSpec
from gnnbench.kernels.to_device import to_device
from gnnbench.sampling.arguments import Topology, seed_tensor, whole, yes_or_no
from gnnbench.validation.law import BY_WEIGHT, WITH, WITHOUT

if TYPE_CHECKING:
    from typing import Self

    from gnnbench.sampling.dgl_adapter import DglSampler
    from gnnbench.sampling.pyg_adapter import PygSampler

TOPOLOGIES = ("gpu", "uva", "cpu")
FRONTIERS = CUMULATIVE, NEW = ("cumulative", "new")
LAWS = (WITHOUT, WITH, BY_WEIGHT)  # of samplers with random numbers of their own


@dataclass(frozen=True)
class Setting:
    """What every sampler is built with, already checked (see ``gnnbench.build_sampler``).

    ``graph`` is one of the store, which another process finds by its path, or ``indptr`` and
    ``indices`` themselves. ``device`` is where the blocks are given, ``topology`` where the graph
    is: ``gpu`` and ``uva`` sample on the device, ``cpu`` on the CPU. ``fanouts`` from the seeds
    outwards. ``weights`` float ``[num_edges]`` or None: of the law ``weighted`` alone.
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
    frontier_chosen: bool = True  # by the user; else an adapter takes its framework's

    @property
    def indptr(self) -> Tensor:
        """int64 ``[num_nodes + 1]``, where the graph was given."""
        return self.graph.indptr if isinstance(self.graph, Graph) else self.graph[0]

    @property
    def indices(self) -> Tensor:
        """int32 or int64 ``[num_edges]``, where the graph was given."""
        return self.graph.indices if isinstance(self.graph, Graph) else self.graph[1]

    @property
    def sampled_on(self) -> torch.device:
        """The device whose kernels draw."""
        return torch.device("cpu") if self.topology == "cpu" else self.device


class Sampler(ABC):
    """Draws the blocks of a batch.

    Without a ``law`` every sampler draws the same (destination, position) multisets for the same
    pick and the same (seed, epoch, batch), whatever the device and the number of threads; local ids
    alone may differ. One that draws by random numbers of its own names the ``law`` of its picks
    (one of ``LAWS``, see ``gnnbench.validation.law``): every batch draws anew by it, and its
    only pick is its own name. An object keeps buffers from one
    batch to the next and is not to be used by two threads at once. Sent to another process, it is
    what it was built with, and is built there anew: nothing that it holds is shared.

    A subclass names itself and what it can do in the class attributes and implements ``draw``;
    ``picks`` has the default first, ``options`` are the keyword arguments of its own: default, help
    and legal values. Made by ``gnnbench.build_sampler``.
    """

    name: ClassVar[str]
    summary: ClassVar[str] = ""
    law: ClassVar[str] = ""
    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda")
    picks: ClassVar[tuple[str, ...]] = PICKS
    frontiers: ClassVar[tuple[str, ...]] = FRONTIERS
    options: ClassVar[dict[str, Option]] = {}
    implementation: ClassVar[int] = 1  # raise it when its work changes, as of ``Spec``
    _built_with: tuple[tuple[Any, ...], dict[str, Any]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not hasattr(cls, "name"):
            cls.name = cls.__name__
        if cls.law and cls.law not in LAWS:
            raise UsageError(
                f"sampler '{cls.name}' has the law '{cls.law}'; one with"
                f" random numbers of its own has one of: {', '.join(LAWS)}"
            )
        _check_attributes(cls)

    def __new__(cls, *setting: Any, **options: Any) -> Self:
        """An object that knows what it is built with."""
        made = super().__new__(cls)
        made._built_with = (setting, options)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        setting, options = self._built_with
        return partial(type(self), **options), setting

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self._sampled_on = setting.sampled_on
        self._key = (-1, 0)  # an epoch and its key: making one takes as long as a small launch
        self._locked: list[LockedTensor] = []
        self._indptr = self._place(setting.indptr, "indptr")
        self._indices = self._place(setting.indices, "indices")
        tables = tuple(self._place(t, "weights") for t in setting.pick.tables)
        self._pick = PickSpec(setting.pick.name, tables, setting.pick.walk)
        weights = setting.weights
        self._weights = None if weights is None else self._place(weights, "weights")

    @classmethod
    def picks_on(cls, device: str) -> tuple[str, ...]:
        """The picks where sampling runs on ``device`` (``cpu`` or ``cuda``), the default first."""
        return (cls.name,) if cls.law else cls.picks

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """Raise ``UsageError`` for an option that the sampler has not, or an illegal value."""
        for option, value in options.items():
            if option not in cls.options:
                known = names.suggestion(option, cls.options)
                raise UsageError(f"sampler '{cls.name}' has no option '{option}'; {known}")
            cls.options[option].check(f"sampler '{cls.name}'", value)

    @property
    def pick(self) -> str:
        """Name of the pick function."""
        return self.setting.pick.name

    @property
    def frontier(self) -> str:
        """``cumulative`` or ``new``."""
        return self.setting.frontier

    @property
    def fanouts(self) -> tuple[int, ...]:
        """Neighbours per destination and hop, from the seeds outwards."""
        return self.setting.fanouts

    @property
    def device(self) -> torch.device:
        """Where the blocks are given."""
        return self.setting.device

    @property
    def indptr(self) -> Tensor:
        """int64 ``[num_nodes + 1]``, where it samples."""
        return self._indptr

    @property
    def indices(self) -> Tensor:
        """int32 or int64 ``[num_edges]``, where it samples."""
        return self._indices

    @property
    def weights(self) -> Tensor | None:
        """float ``[num_edges]`` in the order of ``indices``, where it samples; of the law
        ``weighted`` alone."""
        return self._weights

    @property
    def num_nodes(self) -> int:
        """Nodes of the graph."""
        return self._indptr.numel() - 1

    @property
    def num_edges(self) -> int:
        """Edges of the graph."""
        return self._indices.numel()

    def sample(
        self,
        seeds: Tensor | Sequence[int] | np.ndarray,
        epoch: int = 0,
        batch: int = 0,
        *,
        with_positions: bool | None = None,
    ) -> MiniBatch:
        """Draw the blocks for ``seeds``, input layer first.

        Args:
            seeds: global ids ``[n]``, unique: an int32 or int64 tensor on any device, or integers;
                may be empty.
            epoch: number of the epoch; each draws anew.
            batch: number of the batch in its epoch, below 2^32; each draws anew.
            with_positions: whether the blocks carry each edge's offset in the graph's ``indices``;
                None: as built. Random walks have none, their blocks carry visits as ``weights``.

        Raises:
            UsageError: seeds that repeat, are out of range or of a wrong type; a wrong number; a
                sampler that draws something else than a mini-batch.
            DataError: the graph's offsets or ids are out of range.
        """
        setting = self.setting
        ids = seed_tensor(seeds, self._sampled_on)
        self._check_seeds(ids)
        drawn = self.draw(
            ids.to(self._indices.dtype) if self.law else ids,
            key=self._key_of(epoch),
            batch=whole("batch", batch, 0, 2**32 - 1),
            with_positions=(
                setting.with_positions
                if with_positions is None
                else yes_or_no("with_positions", with_positions)
            ),
        )
        if not isinstance(drawn, MiniBatch):
            raise UsageError(
                f"sampler '{self.name}' must return a gnnbench.MiniBatch from draw, not"
                f" {type(drawn).__name__}"
            )
        drawn.frontier, drawn.number = setting.frontier, batch
        return drawn if self._sampled_on == setting.device else drawn.to(setting.device)

    def _check_seeds(self, ids: Tensor) -> None:
        """Raise ``UsageError`` for what the kernels do not check, or not before they allocate.

        Kernels of the suite check each id. A sampler with a law may not, and its ids are cast; on a
        GPU that is left to it, since a check would wait for the device.
        """
        nodes = self.num_nodes
        if ids.numel() > nodes:
            raise UsageError(
                f"seeds holds an id twice or an id outside the graph: it has {ids.numel()} ids, the"
                f" graph {nodes} nodes"
            )
        if not self.law or ids.device.type != "cpu" or not ids.numel():
            return
        outside = (ids < 0) | (ids >= nodes)
        if bool(outside.any()):
            at = int(outside.nonzero()[0])
            raise UsageError(
                f"seeds holds the id {int(ids[at])} at position {at}; the graph's nodes are 0 to"
                f" {nodes - 1}"
            )
        if ids.unique().numel() < ids.numel():
            raise UsageError("seeds holds an id twice; every seed must be unique")

    def _key_of(self, epoch: int) -> int:
        epoch = whole("epoch", epoch, 0)
        if epoch != self._key[0]:
            self._key = (epoch, rng.key(self.setting.seed, epoch, "sample"))
        return self._key[1]

    @property
    def asks(self) -> bool:
        """Whether ``begin`` waits for nothing: then the next batch may be begun before ``end``."""
        return False

    def begin(self, seeds: Tensor, epoch: int, batch: int) -> Any:
        """Ask for a batch as :meth:`sample` draws it; the ticket for :meth:`end`.

        Raises as :meth:`sample`, or leaves that to :meth:`end`.
        """
        return self.sample(seeds, epoch, batch)

    def end(self, ticket: Any) -> MiniBatch:
        """The batch of a ticket, in the order of :meth:`begin`. All of it was enqueued there, or is
        done on return."""
        drawn: MiniBatch = ticket
        return drawn

    @abstractmethod
    def draw(self, seeds: Tensor, *, key: int, batch: int, with_positions: bool) -> MiniBatch:
        """Draw one batch where the setting samples; ``seeds`` are there and of an id type: with a
        ``law`` of the graph's own.

        ``key`` is of (seed, epoch), in [0, 2^63): a sampler with random numbers of its own may seed
        them with it and ``batch``, so that the same batch is drawn again, or leave both.
        """

    def as_pyg(
        self, edge_ids: Tensor | None = None, *, data: Any = None, **options: Any
    ) -> PygSampler:
        """This sampler as a PyG ``BaseSampler``, for ``NodeLoader``.

        Each node is expanded once, as in PyG: the frontier is ``new`` unless ``build_sampler`` was
        given one. With ``frontier="cumulative"`` a node draws at several hops, and the batch may
        have an edge several times.

        Args:
            edge_ids: int32 or int64 ``[num_edges]``, a permutation: which edge of the user's graph
                lies at each position of ``indices``.
            data: the loader's ``Data``, by which edge ids are derived now. Without ``edge_ids`` and
                ``data`` each process derives them when it needs them, from the loader's data.
            options: none; options of PyG's ``NeighborLoader`` are refused by name.

        Raises:
            UsageError: edge ids or data that do not fit the sampler's graph.
            UnsupportedError: an option, or a sampler without the frontier ``new`` whose
                ``cumulative`` frontier was not chosen in ``build_sampler``.
        """
        from gnnbench.sampling.pyg_adapter import PygSampler

        return PygSampler(self._with_default_frontier(NEW), edge_ids, data, **options)

    def as_dgl(self, edge_ids: Tensor | None = None, **prefetch: Any) -> DglSampler:
        """This sampler as a DGL ``Sampler``, for ``dgl.dataloading.DataLoader``.

        The frontier is ``cumulative``, as in DGL, unless ``build_sampler`` was given one.

        Args:
            edge_ids: as for :meth:`as_pyg`, of a DGL graph ``g.adj_tensors("csc")[2]``; None:
                derived from the loader's graph.
            prefetch: keyword arguments of ``dgl.dataloading.BlockSampler``; those of DGL's
                ``NeighborSampler`` are refused by name.

        Raises:
            UsageError: edge ids that do not fit the sampler's graph.
            UnsupportedError: an option that the adapter does not have.
            MissingError: DGL is not installed.
        """
        from gnnbench.sampling.dgl_adapter import DglSampler

        return DglSampler(self, edge_ids, **prefetch)

    def _with_default_frontier(self, frontier: str) -> Sampler:
        """This sampler, or one built anew with ``frontier`` where the user has not chosen any."""
        setting = self.setting
        if setting.frontier_chosen or setting.frontier == frontier:
            return self
        if frontier not in self.frontiers:
            raise UnsupportedError(
                f"sampler '{self.name}' has no frontier '{frontier}': every node draws again at"
                " each hop, so a batch may have an edge several times; give build_sampler"
                f" frontier='{setting.frontier}' to accept that"
            )
        _, options = self._built_with
        return type(self)(replace(setting, frontier=frontier), **options)

    def close(self) -> None:
        """Unlock what is locked of the host's memory; the sampler cannot be used after it."""
        for copy in self._locked:
            copy.close()
        self._locked = []

    def _place(self, tensor: Tensor, what: str) -> Tensor:
        """``tensor`` where the setting wants the topology."""
        setting = self.setting
        if setting.topology != "uva":
            return to_device(tensor, setting.sampled_on)
        self._locked.append(LockedTensor(tensor.cpu(), setting.device, what))
        return self._locked[-1].tensor


def _check_attributes(cls: type[Sampler]) -> None:
    """Raise ``UsageError`` for a class attribute of a sampler that cannot be used."""
    if not isinstance(cls.name, str) or not cls.name:
        raise UsageError(f"{cls.__name__}.name must be a text that is not empty, not {cls.name!r}")
    known = {"devices": ("cpu", "cuda"), "frontiers": FRONTIERS, "picks": PICKS}
    for attribute, values in known.items():
        given = getattr(cls, attribute)
        if isinstance(given, str) or not given or not set(given) <= set(values):
            raise UsageError(
                f"sampler '{cls.name}': {attribute} must be a tuple of {', '.join(values)}, not"
                f" {given!r}"
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
