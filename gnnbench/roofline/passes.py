"""Single aggregations of a model, forward and backward, as each framework executes them.

Values and the gradient of the rows are compared with float64 within the error bound of a sum of
their length: the first column, the last and some drawn at random. (The gate checks all columns and
the gradients of scores.)
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Generic

import torch
from torch import Tensor

from gnnbench.core.minibatch import Batch, MiniBatch
from gnnbench.kernels.symmetric import symmetric_weights
from gnnbench.models.framework import Aggregation, Attention, BlockT, Framework
from gnnbench.roofline.kernels import AggregationCall, Kernel
from gnnbench.roofline.work import (
    Work,
    aggregate_backward_work,
    aggregate_work,
    attend_backward_work,
    attend_work,
)

SECRET = 2  # columns of every head that are drawn at random
FORWARD, BACKWARD, KEPT = "forward", "backward", "backward, kept"
EPS = torch.finfo(torch.float32).eps
Reference = tuple[Tensor, Tensor]  # float64 values, and the largest allowed error of float32


def aggregations(
    batch: Batch, framework: Framework[BlockT], calls: Sequence[AggregationCall]
) -> list[Kernel]:
    """Kernels of each call: forward and both kinds of backward.

    A call that the framework cannot execute outside a layer is omitted.
    """
    kernels: list[Kernel] = []
    for call in calls:
        if call.mode is None:
            if (attend := framework.attention()) is not None:
                kernels += _Attends(batch, framework, call, attend).kernels()
        elif (run := framework.aggregation(call.mode, call.weighted)) is not None:
            kernels += _Sums(batch, framework, call, run).kernels()
    return kernels


class _Passes(ABC, Generic[BlockT]):
    """One aggregation of a batch in all directions, on random inputs.

    ``_inputs`` are differentiable, rows first; ``_back`` is the gradient of the result.
    """

    _inputs: list[Tensor]
    _back: Tensor

    def __init__(self, batch: Batch, framework: Framework[BlockT], call: AggregationCall) -> None:
        self._batch, self._framework, self._call = batch, framework, call
        self._block = block = batch.blocks[call.layer - 1]
        self._device = block.indptr.device
        self._generator = torch.Generator(self._device).manual_seed(call.layer)
        degree = block.indptr[1:] - block.indptr[:-1]
        places = torch.arange(block.num_dst, device=self._device)
        self._dst, self._src = torch.repeat_interleave(places, degree), block.indices.long()

        width = call.width // max(call.heads, 1)
        some = {0, width - 1, *(secrets.randbelow(width) for _ in range(SECRET))}
        self._columns = sorted(some)

    def _checked(self, rows: Tensor) -> Tensor:
        return rows[..., self._columns].double()

    def _drawn(self, *shape: int) -> Tensor:
        return torch.randn(*shape, generator=self._generator, device=self._device)

    @abstractmethod
    def _run_on(self, block: BlockT, *inputs: Tensor) -> Tensor:
        """Run the framework's aggregation on a block of its own type."""

    @abstractmethod
    def _works(self) -> tuple[Work, Work]:
        """Work of forward and of backward."""

    @abstractmethod
    def _expected_values(self) -> Reference:
        """Reference values of the checked columns."""

    @abstractmethod
    def _expected_gradient(self) -> Reference:
        """Reference gradient of the rows, likewise."""

    def kernels(self) -> list[Kernel]:
        """Its kernels in the order in which a training step runs them."""
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
        ready: Callable[[], Callable[[], object]],
        wrong: Callable[[], str],
    ) -> Kernel:
        call = self._call
        return Kernel(
            "aggregate",
            direction,
            call.layer,
            call.kind,
            call.width,
            call.heads,
            work,
            ready,
            wrong,
        )

    def _fresh(self) -> BlockT:
        """A new block of the framework's type, without a stored transpose."""
        block = self._block.mapped(lambda t: t)
        return self._framework.blocks(MiniBatch(self._batch.seeds, [block], 0))[0]

    def _forward(self) -> Callable[[], Tensor]:
        block = self._fresh()

        def run() -> Tensor:
            with torch.no_grad():
                return self._run_on(block, *self._inputs)

        return run

    def _backward(self, kept: bool) -> Callable[[], Tensor]:
        inputs = [t.detach().requires_grad_() for t in self._inputs]
        out = self._run_on(self._fresh(), *inputs)

        def run() -> Tensor:
            return torch.autograd.grad(out, inputs, self._back, retain_graph=True)[0]

        if kept:
            run()
        return run

    def _wrong_forward(self) -> str:
        return self._compared(self._forward()(), *self._expected_values(), "values")

    def _wrong_backward(self) -> str:
        return self._compared(self._backward(False)(), *self._expected_gradient(), "gradients")

    def _summed(self, to: Tensor, rows: int, terms: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Float64 sums of edges' terms, sums of their absolute values, and terms of each sum."""
        sums = terms.new_zeros(rows, *terms.shape[1:]).index_add_(0, to, terms)
        sizes = torch.zeros_like(sums).index_add_(0, to, terms.abs())
        ones = torch.ones(to.numel(), dtype=torch.float64, device=to.device)
        counts = ones.new_zeros(rows).index_add_(0, to, ones)
        return sums, sizes, counts.view(-1, *[1] * (terms.dim() - 1))

    def _compared(self, result: Tensor, expected: Tensor, error: Tensor, quantity: str) -> str:
        off = (self._checked(result) - expected).abs() > error
        if not bool(off.any()):
            return ""
        call = self._call
        row = int(off.flatten(1).any(1).nonzero()[0])
        return (
            f"the aggregation of layer {call.layer} ({call.kind}, {call.width} wide) has other"
            f" {quantity} than its reference, first in row {row}"
        )


class _Sums(_Passes[BlockT]):
    """Plain or weighted sums and means."""

    def __init__(
        self,
        batch: Batch,
        framework: Framework[BlockT],
        call: AggregationCall,
        run: Aggregation[BlockT],
    ) -> None:
        super().__init__(batch, framework, call)
        block, self._run = self._block, run
        self._weights = None
        if call.weighted:  # by visits of walks, else by degrees
            self._weights = block.weights
            if self._weights is None:
                self._weights = symmetric_weights(block)
        self._inputs = [self._drawn(block.num_src, call.width)]
        self._back = self._drawn(block.num_dst, call.width)

    def _run_on(self, block: BlockT, *inputs: Tensor) -> Tensor:
        (x,) = inputs
        return self._run(block, x, self._weights)

    def _works(self) -> tuple[Work, Work]:
        call = self._call
        assert call.mode is not None
        arguments = self._block, call.width, call.mode, int(call.weighted)
        return aggregate_work(*arguments), aggregate_backward_work(*arguments)

    def _expected_values(self) -> Reference:
        return self._expected(self._src, self._dst, self._inputs[0], self._block.num_dst)

    def _expected_gradient(self) -> Reference:
        return self._expected(self._dst, self._src, self._back, self._block.num_src)

    def _expected(self, read: Tensor, write: Tensor, rows: Tensor, count: int) -> Reference:
        mode, num_dst = self._call.mode, self._block.num_dst
        weight = torch.ones_like(self._dst, dtype=torch.float64)
        if self._weights is not None:
            weight = self._weights.double()
        degree = weight.new_zeros(num_dst).index_add_(0, self._dst, weight)
        whole = degree + 1 if mode == "gcn" else degree
        factor = torch.ones_like(whole) if mode == "sum" else 1 / torch.where(whole > 0, whole, 1)
        ends = self._checked(rows)
        terms = ends[read] * (weight * factor[self._dst]).unsqueeze(1)
        sums, size, number = self._summed(write, count, terms)
        if mode == "gcn":
            own = ends[:num_dst] * factor.unsqueeze(1)
            sums[:num_dst] += own
            size[:num_dst] += own.abs()
        # A sum of n terms in any order is off by at most n - 1 roundings of the sum of absolute
        # values (Higham, 4.2); a product, a division and a degree add three, an own row adds one.
        return sums, size * (number + 4) * EPS


class _Attends(_Passes[BlockT]):
    """Softmax over scores of edges, and the sums weighted by it."""

    def __init__(
        self,
        batch: Batch,
        framework: Framework[BlockT],
        call: AggregationCall,
        run: Attention[BlockT],
    ) -> None:
        super().__init__(batch, framework, call)
        block, self._run, heads = self._block, run, call.heads
        width = call.width // heads
        self._inputs = [
            self._drawn(block.num_src, heads, width),
            self._drawn(block.num_src, heads),
            self._drawn(block.num_dst, heads),
        ]
        self._back = self._drawn(block.num_dst, heads, width)

    def _run_on(self, block: BlockT, *inputs: Tensor) -> Tensor:
        z, of_source, of_destination = inputs
        return self._run(block, z, of_source, of_destination, self._call.slope)

    def _works(self) -> tuple[Work, Work]:
        arguments = self._block, self._call.heads, self._call.width
        return attend_work(*arguments), attend_backward_work(*arguments)

    def _alpha(self) -> Reference:
        """Float64 weights ``[num_edges, heads]``, and the number of roundings of each.

        An exponential multiplies the error of a score by its size; a row's n terms are added.
        """
        _, source, destination = (t.double() for t in self._inputs)
        scores = source[self._src] + destination[self._dst]
        scores = torch.where(scores > 0, scores, scores * self._call.slope)
        top = scores.new_full((self._block.num_dst, self._call.heads), -torch.inf)
        index = self._dst.unsqueeze(1).expand_as(scores)
        top.scatter_reduce_(0, index, scores, "amax")
        parts = (scores - top[self._dst]).exp()
        total, _, number = self._summed(self._dst, self._block.num_dst, parts)
        largest = scores.abs().max() if scores.numel() else scores.new_zeros(())
        return parts / total[self._dst], number[self._dst] + 8 + 8 * largest

    def _expected_values(self) -> Reference:
        return self._expected(self._src, self._dst, self._inputs[0], self._block.num_dst)

    def _expected_gradient(self) -> Reference:
        return self._expected(self._dst, self._src, self._back, self._block.num_src)

    def _expected(self, read: Tensor, write: Tensor, rows: Tensor, count: int) -> Reference:
        alpha, roundings = self._alpha()
        terms = self._checked(rows)[read] * alpha.unsqueeze(2)
        sums, size, number = self._summed(write, count, terms)
        _, errors, _ = self._summed(write, count, terms * roundings.unsqueeze(2))
        return sums, (errors + size * (number + 4)) * EPS
