"""The interface of a sampler: seeds of a batch in, a mini-batch of blocks out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from gnnbench.core.errors import UnsupportedError, UsageError
from gnnbench.core.minibatch import MiniBatch
from gnnbench.core.option import Option
from gnnbench.kernels import rng
from gnnbench.kernels.picks import PICKS
from gnnbench.sampling.arguments import check_seeds, seed_tensor, whole, yes_or_no
from gnnbench.sampling.placed_graph import PlacedGraph
from gnnbench.sampling.setting import FRONTIERS, NEW, Setting, check_class

if TYPE_CHECKING:
    from typing import Self

    from gnnbench.sampling.dgl_adapter import DglAdapter
    from gnnbench.sampling.pyg_adapter import PygAdapter


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
        check_class(cls)

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
        self._placed = PlacedGraph(setting)
        self._indptr, self._indices = self._placed.indptr, self._placed.indices
        self._pick, self._weights = self._placed.pick, self._placed.weights

    @classmethod
    def picks_on(cls, device: str) -> tuple[str, ...]:
        """The picks where sampling runs on ``device`` (``cpu`` or ``cuda``), the default first."""
        return (cls.name,) if cls.law else cls.picks

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
        check_seeds(ids, self.num_nodes, exhaustive=bool(self.law))
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
    ) -> PygAdapter:
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
        from gnnbench.sampling.pyg_adapter import PygAdapter

        return PygAdapter(_with_default_frontier(self, NEW), edge_ids, data, **options)

    def as_dgl(self, edge_ids: Tensor | None = None, **prefetch: Any) -> DglAdapter:
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
        from gnnbench.sampling.dgl_adapter import DglAdapter

        return DglAdapter(self, edge_ids, **prefetch)

    def close(self) -> None:
        """Unlock the graph's host memory; the sampler cannot be used afterwards."""
        self._placed.close()


def _with_default_frontier(sampler: Sampler, frontier: str) -> Sampler:
    """Return the sampler, rebuilt with ``frontier`` unless the user has chosen one."""
    setting = sampler.setting
    if setting.frontier_chosen or setting.frontier == frontier:
        return sampler
    if frontier not in sampler.frontiers:
        raise UnsupportedError(
            f"sampler '{sampler.name}' has no frontier '{frontier}': every node draws again at"
            " each hop, so a batch may have an edge several times; give build_sampler"
            f" frontier='{setting.frontier}' to accept that"
        )
    _, options = sampler._built_with
    return type(sampler)(replace(setting, frontier=frontier), **options)
