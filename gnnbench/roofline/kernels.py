"""The kernels of one batch, each by itself: its sampling, its gather, its model's aggregations.

What a model aggregates is not said a second time here: its layers of ours are run on tensors
without data, over an aggregation that notes what it is asked for. Each framework then does the same
its own way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gnnbench.minibatch import Batch, Block, MiniBatch
from gnnbench.models.framework import Aggregation, Framework
from gnnbench.models.kinds import Mode
from gnnbench.models.native import Native
from gnnbench.models.stack import build
from gnnbench.roofline.work import Work, aggregate_backward_work, aggregate_work

FORWARD, BACKWARD, KEPT = "forward", "backward", "backward, kept"


@dataclass(frozen=True)
class Kernel:
    """One kernel on one batch. ``ready`` makes everything that is not its work and returns what is.

    ``direction`` of an aggregation: ``forward``; ``backward``, on a block that no backward has seen
    before, so that a transpose is part of it; ``backward, kept``, on one that has. ``layer`` counts
    from 1 at the input; ``width`` are elements of a row. ``wrong`` says what is wrong with the
    result, or "".
    """

    name: str
    direction: str
    layer: int
    mode: str
    width: int
    work: Work
    ready: Callable[[], Callable[[], Any]]
    wrong: Callable[[], str] = lambda: ""

    def ident(self) -> dict[str, Any]:
        """What tells it from the batch's others."""
        names = ("name", "direction", "layer", "mode", "width")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Asked:
    """An aggregation that a model asks for: of the block of ``layer``, from 1 at the input."""

    layer: int
    mode: Mode
    width: int
    weighted: bool


def asked_of(
    model: str, blocks: Sequence[Block], feature_dim: int, hidden: int, classes: int
) -> list[Asked]:
    """The aggregations of a model's layers over blocks, the input layer first."""
    found: list[Asked] = []
    here = [block.mapped(lambda t: t.to("meta")) for block in blocks]

    def note(block: Block, x: Tensor, mode: Mode, edge_weight: Tensor | None = None) -> Tensor:
        layer = next(n for n, b in enumerate(here, 1) if b is block)
        found.append(Asked(layer, mode, x.shape[1], edge_weight is not None))
        return x.new_empty(block.num_dst, x.shape[1])

    with torch.no_grad():
        stack = build(model, Native(note), feature_dim, hidden, classes, len(blocks), 0)
        stack.to("meta")(here, torch.empty(here[0].num_src, feature_dim, device="meta"))
    return found


def aggregations(batch: Batch, framework: Framework, asked: Sequence[Asked]) -> list[Kernel]:
    """Forward and both kinds of backward of each; none that the framework has not apart."""
    found: list[Kernel] = []
    for one in asked:
        if (run := framework.aggregation(one.mode, one.weighted)) is not None:
            found += _Passes(batch, framework, one, run).kernels()
    return found


class _Passes:
    """One aggregation of a batch in all directions, over rows drawn for it."""

    def __init__(self, batch: Batch, framework: Framework, asked: Asked, run: Aggregation) -> None:
        self._batch, self._framework, self._asked, self._run = batch, framework, asked, run
        self._block = batch.blocks[asked.layer - 1]
        self._weights = self._block.weights if asked.weighted else None
        device = self._block.indptr.device
        generator = torch.Generator(device).manual_seed(asked.layer)

        def rows(count: int) -> Tensor:
            return torch.randn(count, asked.width, generator=generator, device=device)

        self._x, self._back = rows(self._block.num_src), rows(self._block.num_dst)

    def kernels(self) -> list[Kernel]:
        """In the order in which a step runs them."""
        asked = self._asked
        forward, backward = (
            count(self._block, asked.width, asked.mode, int(asked.weighted))
            for count in (aggregate_work, aggregate_backward_work)
        )
        return [
            self._kernel(FORWARD, forward, self._forward, self._wrong_forward),
            self._kernel(BACKWARD, backward, lambda: self._backward(False), self._wrong_backward),
            self._kernel(KEPT, backward, lambda: self._backward(True), lambda: ""),
        ]

    def _kernel(
        self,
        direction: str,
        work: Work,
        ready: Callable[[], Callable[[], Any]],
        wrong: Callable[[], str],
    ) -> Kernel:
        one = self._asked
        return Kernel("aggregate", direction, one.layer, one.mode, one.width, work, ready, wrong)

    def _fresh(self) -> Any:
        """The block as the framework takes it, of which nothing is kept yet."""
        block = self._block.mapped(lambda t: t)
        return self._framework.blocks(MiniBatch(self._batch.seeds, [block], 0))[0]

    def _forward(self) -> Callable[[], Tensor]:
        block = self._fresh()

        def run() -> Tensor:
            with torch.no_grad():
                return self._run(block, self._x, self._weights)

        return run

    def _backward(self, kept: bool) -> Callable[[], Tensor]:
        x = self._x.detach().requires_grad_()
        out = self._run(self._fresh(), x, self._weights)

        def run() -> Tensor:
            return torch.autograd.grad(out, x, self._back, retain_graph=True)[0]

        if kept:
            run()
        return run

    def _wrong_forward(self) -> str:
        dst, src = self._ends()
        right, size = self._sums(src, dst, self._x, self._block.num_dst, forward=True)
        return self._compared(self._forward()(), right, size, "values")

    def _wrong_backward(self) -> str:
        dst, src = self._ends()
        right, size = self._sums(dst, src, self._back, self._block.num_src, forward=False)
        return self._compared(self._backward(False)(), right, size, "gradients")

    def _ends(self) -> tuple[Tensor, Tensor]:
        degree = self._block.indptr[1:] - self._block.indptr[:-1]
        dst = torch.repeat_interleave(torch.arange(degree.numel(), device=degree.device), degree)
        return dst, self._block.indices.long()

    def _sums(
        self, read: Tensor, write: Tensor, rows: Tensor, count: int, forward: bool
    ) -> tuple[Tensor, Tensor]:
        """First and last column in float64, and what error float32 may have made of them."""
        mode, num_dst = self._asked.mode, self._block.num_dst
        dst = write if forward else read
        weight = torch.ones_like(dst, dtype=torch.float64)
        if self._weights is not None:
            weight = self._weights.double()
        degree = weight.new_zeros(num_dst).index_add_(0, dst, weight)
        whole = degree + 1 if mode == "gcn" else degree
        factor = torch.ones_like(whole) if mode == "sum" else 1 / torch.where(whole > 0, whole, 1)
        ends = rows[:, [0, -1]].double()
        terms = ends[read] * (weight * factor[dst]).unsqueeze(1)
        own = ends[:num_dst] * factor.unsqueeze(1) if mode == "gcn" else None
        found = []
        for change in (lambda t: t, torch.abs):
            sums = ends.new_zeros(count, 2).index_add_(0, write, change(terms))
            if own is not None:
                sums[:num_dst] += change(own)
            found.append(sums)
        right, size = found
        # Any order of n additions errs by n - 1 roundings of the sum of sizes (Higham, 4.2); a
        # product, a division and a degree are three more.
        n = ends.new_zeros(count).index_add_(0, write, torch.ones_like(weight)) + 4
        return right, size * n.unsqueeze(1) * torch.finfo(torch.float32).eps

    def _compared(self, found: Tensor, right: Tensor, error: Tensor, what: str) -> str:
        off = (found[:, [0, -1]].double() - right).abs() > error
        if not bool(off.any()):
            return ""
        one = self._asked
        row = int(off.any(1).nonzero()[0])
        return (
            f"the aggregation of layer {one.layer} ({one.mode}, {one.width} wide) has other {what}"
            f" than its reference, first in row {row}"
        )
