"""The interface of a sampler: seeds of a batch in, a mini-batch of blocks out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt
from torch import Tensor

from gnnbench.core.errors import UnsupportedError, UsageError
from gnnbench.core.minibatch import MiniBatch
from gnnbench.core.option import Option
from gnnbench.kernels import rng
from gnnbench.kernels.picks import PICKS
from gnnbench.sampling.arguments import check_seeds, seed_tensor, whole, yes_or_no
from gnnbench.sampling.graph_sampling import GraphSampling
from gnnbench.sampling.setting import FRONTIERS, NEW, Setting, check_class

if TYPE_CHECKING:
    from gnnbench.sampling.dgl_adapter import DglAdapter
    from gnnbench.sampling.pyg_adapter import PygAdapter


class Sampler(GraphSampling, ABC):
    """Draws the blocks of a batch.

    A sampler without a ``law`` is exact: for equal (seed, epoch, batch) and pick it draws the same
    (destination, position) multisets on every device and with any number of threads; only local ids
    may differ. A sampler with random numbers of its own states the ``law`` of its picks (one of
    ``LAWS``, see ``gnnbench.validation.law``); its only pick is its own name.

    A subclass sets the class attributes and implements ``draw``. ``picks`` lists the default first.
    ``options`` are its keyword arguments: default, help and legal values. Build one with
    ``gnnbench.build_sampler``. An object reuses buffers between batches, so two threads must not
    use it at once. It is pickled as its arguments and rebuilt from them.
    """

    name: ClassVar[str]
    summary: ClassVar[str] = ""
    law: ClassVar[str] = ""
    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda")
    picks: ClassVar[tuple[str, ...]] = PICKS
    frontiers: ClassVar[tuple[str, ...]] = FRONTIERS
    options: ClassVar[dict[str, Option]] = {}
    implementation: ClassVar[int] = 1  # raise it when its work changes, as in ``Spec``

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if not hasattr(cls, "name"):
            cls.name = cls.__name__
        check_class(cls)

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._epoch_key = (-1, 0)  # cached: computing a key takes as long as a small launch

    @classmethod
    def picks_on(cls, device: str) -> tuple[str, ...]:
        """The picks when sampling on ``device`` (``cpu`` or ``cuda``), the default first."""
        return (cls.name,) if cls.law else cls.picks

    def sample(
        self,
        seeds: Tensor | Sequence[int] | npt.NDArray[np.int32] | npt.NDArray[np.int64],
        epoch: int = 0,
        batch: int = 0,
        *,
        with_positions: bool | None = None,
    ) -> MiniBatch:
        """Draw the blocks for ``seeds``, input layer first.

        Args:
            seeds: unique global ids ``[n]``: an int32 or int64 tensor on any device, or integers;
                may be empty.
            epoch: number of the epoch; each epoch draws different edges.
            batch: number of the batch in its epoch, below 2^32.
            with_positions: whether blocks carry each edge's offset in the graph's ``indices``;
                None: as built. Random walks have none; their blocks carry visits as ``weights``.

        Raises:
            UsageError: seeds that repeat, are out of range or of a wrong type; a wrong number; a
                sampler whose ``draw`` does not return a mini-batch.
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
        if epoch != self._epoch_key[0]:
            self._epoch_key = (epoch, rng.key(self.setting.seed, epoch, "sample"))
        return self._epoch_key[1]

    @property
    def submits_async(self) -> bool:
        """Whether ``begin`` returns without waiting, so the next batch can begin before ``end``."""
        return False

    def begin(self, seeds: Tensor, epoch: int, batch: int) -> object:
        """Submit a batch as :meth:`sample` draws it; returns the ticket for :meth:`end`.

        Raises as :meth:`sample`, or defers the error to :meth:`end`.
        """
        return self.sample(seeds, epoch, batch)

    def end(self, ticket: object) -> MiniBatch:
        """Return the batch of a ticket; call it in the order of :meth:`begin`.

        All work was enqueued by ``begin``, or is done on return.
        """
        if not isinstance(ticket, MiniBatch):
            raise TypeError(f"the ticket of a batch is a {type(ticket).__name__}, not a MiniBatch")
        return ticket

    @abstractmethod
    def draw(self, seeds: Tensor, *, key: int, batch: int, with_positions: bool) -> MiniBatch:
        """Draw one batch on the sampling device.

        ``seeds`` are int32 or int64 on that device; with a ``law`` they have the graph's id type.
        ``key`` is derived from (seed, epoch), in [0, 2^63). A sampler with random numbers of its
        own may seed them with ``key`` and ``batch`` to make draws repeatable.
        """

    def as_pyg(
        self, edge_ids: Tensor | None = None, *, data: object = None, **options: object
    ) -> PygAdapter:
        """Return a PyG ``BaseSampler`` for ``NodeLoader``, backed by this sampler.

        As in PyG each node is expanded once: the frontier is ``new`` unless ``build_sampler`` chose
        one. With ``cumulative`` a batch may contain an edge several times.

        Args:
            edge_ids: int32 or int64 ``[num_edges]``, a permutation: the user's edge at each
                position of ``indices``. None: derived from ``data``, or in each process from the
                loader's data.
            data: the loader's ``Data``.
            options: none; options of PyG's ``NeighborLoader`` are refused by name.

        Raises:
            UsageError: edge ids or data that do not fit the sampler's graph.
            UnsupportedError: an option, or a sampler without the frontier ``new`` unless
                ``build_sampler`` chose its ``cumulative`` frontier.
        """
        from gnnbench.sampling.pyg_adapter import PygAdapter

        return PygAdapter(_with_default_frontier(self, NEW), edge_ids, data, **options)

    def as_dgl(self, edge_ids: Tensor | None = None, **prefetch: object) -> DglAdapter:
        """Return a DGL ``Sampler`` for ``dgl.dataloading.DataLoader``, backed by this sampler.

        The frontier is ``cumulative``, as in DGL, unless ``build_sampler`` chose one.

        Args:
            edge_ids: as for :meth:`as_pyg`; of a DGL graph, ``g.adj_tensors("csc")[2]``. None:
                derived from the loader's graph.
            prefetch: keyword arguments of ``dgl.dataloading.BlockSampler``; those of DGL's
                ``NeighborSampler`` are refused by name.

        Raises:
            UsageError: edge ids that do not fit the sampler's graph.
            UnsupportedError: an option that the adapter does not support.
            MissingError: DGL is not installed.
        """
        from gnnbench.sampling.dgl_adapter import DglAdapter

        return DglAdapter(self, edge_ids, **prefetch)


def _with_default_frontier(sampler: Sampler, frontier: str) -> Sampler:
    """Return the sampler, rebuilt with ``frontier`` unless the user chose one."""
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
