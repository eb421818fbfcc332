"""Rows of several batches' union, fetched once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import torch
from torch import Tensor

from gnnbench.minibatch import Batch
from gnnbench.stages.features.base import Over, RowStore
from gnnbench.stages.job import Job


class WindowStore(Over):
    """The union of a window's nodes from the store ``under``, copied out batch by batch.

    The union is fetched with the window's first batch, in ascending order of ids, and held until
    the next window's. A batch that was not announced is a window by itself. Kernels belong in the
    place of ``torch.unique`` (page order needs no full sort) and of ``index_select``.
    """

    overlaps = True

    def __init__(self, job: Job, under: RowStore, window: int) -> None:
        super().__init__(job, under)
        self.window = window
        self._waiting: list[Batch] = []
        self._places: dict[int, Tensor] = {}  # of a batch's rows in the union, by its identity
        self._union: Tensor | None = None

    def forget(self) -> None:
        """No batch is announced any more."""
        super().forget()
        self._expect([])

    def announce(self, batches: Sequence[Batch]) -> None:
        """Hear which batches are loaded next; their rows are fetched with the first of them."""
        self._expect(batches)

    def _expect(self, batches: Sequence[Batch]) -> None:
        self._waiting, self._places, self._union = list(batches), {}, None

    def lacking(self, batches: Iterable[Tensor]) -> Iterator[Tensor]:
        """The union of each window's."""
        rest = iter(batches)
        while window := list(islice(rest, self.window)):
            yield torch.cat(window).unique()

    def load(self, batch: Batch) -> Tensor:
        """Rows ``[n, feature_dim]``, on the device."""
        if not any(batch is one for one in self._waiting):
            self.announce([batch])
        if self._union is None:
            self._fetch()
        assert self._union is not None
        return self._union.index_select(0, self._places[id(batch)])

    def _fetch(self) -> None:
        ids = [b.input_nodes.to(self.job.device) for b in self._waiting]
        union, places = torch.cat(ids).unique(return_inverse=True)
        self._union = self._under.fetch(union)
        parts = places.split([one.numel() for one in ids])
        self._places = {id(b): part for b, part in zip(self._waiting, parts, strict=True)}
        self.count(places.numel() - union.numel(), "reused")

    def close(self) -> None:
        """Free the union, and what the store below took."""
        self._expect([])
        super().close()
