"""A model's aggregations by themselves, forward and backward, in a framework's own way.

Values and the gradient of the rows are held against float64 within the bound of their sums'
lengths: the first column, the last, and some that nobody knows before. (All columns, and the
scores' gradients, are the gate's.)
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from gnnbench.core.minibatch import Batch, MiniBatch
from gnnbench.models.framework import Aggregation, Attention, Framework
from gnnbench.roofline.kernels import Asked, Kernel
from gnnbench.roofline.work import (
    Work,
    aggregate_backward_work,
    aggregate_work,
    attend_backward_work,
    attend_work,
)

SECRET = 2  # columns, of every head
FORWARD, BACKWARD, KEPT = "forward", "backward", "backward, kept"
EPS = torch.finfo(torch.float32).eps
Right = tuple[Tensor, Tensor]  # float64 values, and how far float32 may be from them


def aggregations(batch: Batch, framework: Framework, asked: Sequence[Asked]) -> list[Kernel]:
    """Forward and both kinds of backward of each; none that the framework has not apart."""
    found: list[Kernel] = []
    for one in asked:
        if one.mode is None:
            if (attend := framework.attention()) is not None:
                found += _Attends(batch, framework, one, attend).kernels()
        elif (run := framework.aggregation(one.mode, one.weighted)) is not None:
            found += _Sums(batch, framework, one, run).kernels()
    return found


class _Passes(ABC):
    """One aggregation of a batch in all directions, over tensors drawn for it.

    ``_inputs`` are differentiable, rows first; ``_back`` is the gradient of the result.
    """

    _inputs: list[Tensor]
    _back: Tensor

    def __init__(self, batch: Batch, framework: Framework, asked: Asked) -> None:
        self._batch, self._framework, self._asked = batch, framework, asked
        self._block = block = batch.blocks[asked.layer - 1]
        self._device = block.indptr.device
        self._generator = torch.Generator(self._device).manual_seed(asked.layer)
        degree = block.indptr[1:] - block.indptr[:-1]
        places = torch.arange(block.num_dst, device=self._device)
        self._dst, self._src = torch.repeat_interleave(places, degree), block.indices.long()

        width = asked.width // max(asked.heads, 1)
        some = {0, width - 1, *(secrets.randbelow(width) for _ in range(SECRET))}
        self._columns = sorted(some)

    def _looked_at(self, rows: Tensor) -> Tensor:
        return rows[..., self._columns].double()

    def _drawn(self, *shape: int) -> Tensor:
        return torch.randn(*shape, generator=self._generator, device=self._device)

    @abstractmethod
    def _call(self, block: Any, *inputs: Tensor) -> Tensor:
        """The framework's aggregation of a block of its own."""

    @abstractmethod
    def _works(self) -> tuple[Work, Work]:
        """Of forward and of backward."""

    @abstractmethod
    def _right_forward(self) -> Right:
        """Of the columns that are looked at."""

    @abstractmethod
    def _right_backward(self) -> Right:
        """The same of the rows' gradient."""

    def kernels(self) -> list[Kernel]:
        """In the order in which a step runs them."""
        forward, backward = self._works()
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
        return Kernel(
            "aggregate", direction, one.layer, one.words, one.width, one.heads, work, ready, wrong
        )

    def _fresh(self) -> Any:
        """The block as the framework takes it, of which nothing is kept yet."""
        block = self._block.mapped(lambda t: t)
        return self._framework.blocks(MiniBatch(self._batch.seeds, [block], 0))[0]

    def _forward(self) -> Callable[[], Tensor]:
        block = self._fresh()

        def run() -> Tensor:
            with torch.no_grad():
                return self._call(block, *self._inputs)

        return run

    def _backward(self, kept: bool) -> Callable[[], Tensor]:
        inputs = [t.detach().requires_grad_() for t in self._inputs]
        out = self._call(self._fresh(), *inputs)

        def run() -> Tensor:
            return torch.autograd.grad(out, inputs, self._back, retain_graph=True)[0]

        if kept:
            run()
        return run

    def _wrong_forward(self) -> str:
        return self._compared(self._forward()(), *self._right_forward(), "values")

    def _wrong_backward(self) -> str:
        return self._compared(self._backward(False)(), *self._right_backward(), "gradients")

    def _summed(self, to: Tensor, rows: int, terms: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Float64 sums of edges' terms, those of their sizes, and how many each has."""
        sums = terms.new_zeros(rows, *terms.shape[1:]).index_add_(0, to, terms)
        sizes = torch.zeros_like(sums).index_add_(0, to, terms.abs())
        ones = torch.ones(to.numel(), dtype=torch.float64, device=to.device)
        counts = ones.new_zeros(rows).index_add_(0, to, ones)
        return sums, sizes, counts.view(-1, *[1] * (terms.dim() - 1))

    def _compared(self, found: Tensor, right: Tensor, error: Tensor, what: str) -> str:
        off = (self._looked_at(found) - right).abs() > error
        if not bool(off.any()):
            return ""
        one = self._asked
        row = int(off.flatten(1).any(1).nonzero()[0])
        return (
            f"the aggregation of layer {one.layer} ({one.words}, {one.width} wide) has other {what}"
            f" than its reference, first in row {row}"
        )


class _Sums(_Passes):
    """Plain or weighted sums, and what is made of them."""

    def __init__(self, batch: Batch, framework: Framework, asked: Asked, run: Aggregation) -> None:
        super().__init__(batch, framework, asked)
        block, self._run = self._block, run
        self._weights = block.weights if asked.weighted else None
        self._inputs = [self._drawn(block.num_src, asked.width)]
        self._back = self._drawn(block.num_dst, asked.width)

    def _call(self, block: Any, *inputs: Tensor) -> Tensor:
        (x,) = inputs
        return self._run(block, x, self._weights)

    def _works(self) -> tuple[Work, Work]:
        one = self._asked
        assert one.mode is not None
        told = self._block, one.width, one.mode, int(one.weighted)
        return aggregate_work(*told), aggregate_backward_work(*told)

    def _right_forward(self) -> Right:
        return self._right(self._src, self._dst, self._inputs[0], self._block.num_dst)

    def _right_backward(self) -> Right:
        return self._right(self._dst, self._src, self._back, self._block.num_src)

    def _right(self, read: Tensor, write: Tensor, rows: Tensor, count: int) -> Right:
        mode, num_dst = self._asked.mode, self._block.num_dst
        weight = torch.ones_like(self._dst, dtype=torch.float64)
        if self._weights is not None:
            weight = self._weights.double()
        degree = weight.new_zeros(num_dst).index_add_(0, self._dst, weight)
        whole = degree + 1 if mode == "gcn" else degree
        factor = torch.ones_like(whole) if mode == "sum" else 1 / torch.where(whole > 0, whole, 1)
        ends = self._looked_at(rows)
        terms = ends[read] * (weight * factor[self._dst]).unsqueeze(1)
        right, size, number = self._summed(write, count, terms)
        if mode == "gcn":
            own = ends[:num_dst] * factor.unsqueeze(1)
            right[:num_dst] += own
            size[:num_dst] += own.abs()
        # Any order of n additions errs by n - 1 roundings of the sum of sizes (Higham, 4.2); a
        # product, a division and a degree are three more, an own row is one.
        return right, size * (number + 4) * EPS


class _Attends(_Passes):
    """Softmax over scores of edges, and the sums that it weighs."""

    def __init__(self, batch: Batch, framework: Framework, asked: Asked, run: Attention) -> None:
        super().__init__(batch, framework, asked)
        block, self._run, heads = self._block, run, asked.heads
        width = asked.width // heads
        self._inputs = [
            self._drawn(block.num_src, heads, width),
            self._drawn(block.num_src, heads),
            self._drawn(block.num_dst, heads),
        ]
        self._back = self._drawn(block.num_dst, heads, width)

    def _call(self, block: Any, *inputs: Tensor) -> Tensor:
        z, of_source, of_destination = inputs
        return self._run(block, z, of_source, of_destination, self._asked.slope)

    def _works(self) -> tuple[Work, Work]:
        told = self._block, self._asked.heads, self._asked.width
        return attend_work(*told), attend_backward_work(*told)

    def _alpha(self) -> Right:
        """Float64 weights ``[num_edges, heads]``, and their roundings for ``n`` edges of a row:
        scores' errors are multiplied by their size in the exponent, n terms are added up."""
        _, source, destination = (t.double() for t in self._inputs)
        scores = source[self._src] + destination[self._dst]
        scores = torch.where(scores > 0, scores, scores * self._asked.slope)
        top = scores.new_full((self._block.num_dst, self._asked.heads), -torch.inf)
        index = self._dst.unsqueeze(1).expand_as(scores)
        top.scatter_reduce_(0, index, scores, "amax")
        parts = (scores - top[self._dst]).exp()
        total, _, number = self._summed(self._dst, self._block.num_dst, parts)
        largest = scores.abs().max() if scores.numel() else scores.new_zeros(())
        return parts / total[self._dst], number[self._dst] + 8 + 8 * largest

    def _right_forward(self) -> Right:
        return self._right(self._src, self._dst, self._inputs[0], self._block.num_dst)

    def _right_backward(self) -> Right:
        return self._right(self._dst, self._src, self._back, self._block.num_src)

    def _right(self, read: Tensor, write: Tensor, rows: Tensor, count: int) -> Right:
        alpha, roundings = self._alpha()
        terms = self._looked_at(rows)[read] * alpha.unsqueeze(2)
        right, size, number = self._summed(write, count, terms)
        _, errors, _ = self._summed(write, count, terms * roundings.unsqueeze(2))
        return right, (errors + size * (number + 4)) * EPS
