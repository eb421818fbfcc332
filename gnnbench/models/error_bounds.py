"""Values with bounds on the error of a correct float32 computation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gnnbench.core import precision

UNIT_ROUNDOFF = precision.UNIT_ROUNDOFF[precision.FLOAT32]
# Exceeded by a sum of n terms with a probability of 2 n exp(-8^2 / 2) at most, some n / 10^13.
DEVIATIONS = 8.0
DIVISION = 3  # a reciprocal, its product, and what else a mean may take
FUNCTION = 8  # units of exp and sqrt, of fast ones too
UNBOUNDED = 1e30  # what is divided by something that may be 0


def error_factor(terms: Tensor) -> Tensor:
    """Bound of a float32 sum's error over the sum of its terms' magnitudes, whatever the order.

    The smaller of gamma_n = n u / (1 - n u) (Higham, Accuracy and Stability of Numerical
    Algorithms, 2nd ed., section 3.1) and its form for independent roundings, with n under a root
    (Higham and Mary, SIAM J. Sci. Comput. 41, 2019). ``terms``: n, float64.
    """
    u = UNIT_ROUNDOFF
    always = terms * u / (1 - terms * u)
    likely = torch.expm1(DEVIATIONS * terms.sqrt() * u + terms * u * u / (1 - u))
    return torch.minimum(always, likely)


@dataclass(frozen=True)
class Bounded:
    """float64 ``value`` ``[n, ...]`` that computes like a tensor and carries its error bound.

    Linear maps are gathered up: a value is a sum, in any order, of terms whose magnitudes add up to
    ``size`` ``[n, ...]``, with at most ``terms`` ``[n]`` roundings on the way of one; ``error``
    ``[n, ...]`` is what its operands brought along, added up, but through a matrix. What is not
    linear begins anew.

    A kink (ReLU) is in doubt where the value may be 0 or of the other sign; one that is 0 without
    any error is not. ``nodes`` int64 ``[n]``: whose input row moves that value; in ``again``, bool
    ``[num_nodes]``, which all values of a computation share, the node is marked. ``doubt`` bool
    ``[n]``: the row depends on a kink in doubt.
    """

    value: Tensor
    error: Tensor
    size: Tensor
    terms: Tensor
    nodes: Tensor
    doubt: Tensor
    again: Tensor

    @classmethod
    def exact(cls, x: Tensor) -> Bounded:
        """Rows of nodes 0 to n - 1 ``[n, dim]``, free of any error."""
        n, x = x.shape[0], x.double()
        none = torch.zeros((), dtype=torch.float64)
        return cls(
            x, none.expand_as(x), x.abs(), none.expand(n), torch.arange(n),
            torch.zeros(n, dtype=torch.bool), torch.zeros(n, dtype=torch.bool),
        )  # fmt: skip

    @property
    def shape(self) -> torch.Size:
        """Of the value."""
        return self.value.shape

    def bound(self) -> Tensor:
        """Bound of the float32 error, elementwise."""
        own = error_factor(self.terms).reshape(-1, *[1] * (self.value.dim() - 1))
        return self.error + own * self.size

    def double(self) -> Bounded:
        """It is."""
        return self

    def detach(self) -> Tensor:
        """The value as a constant."""
        return self.value

    # Linear maps.

    def new_zeros(self, *shape: int) -> Bounded:
        """Rows of nodes 0 to n - 1, all 0."""
        return replace(Bounded.exact(torch.zeros(shape)), again=self.again)

    def __getitem__(self, rows: Tensor | slice[None, int, None]) -> Bounded:
        """Some of the rows; each is still its node's."""
        return Bounded(
            self.value[rows], self.error[rows], self.size[rows], self.terms[rows],
            self.nodes[rows], self.doubt[rows], self.again,
        )  # fmt: skip

    def index_add(self, dim: int, at: Tensor, rows: Bounded) -> Bounded:
        """``rows`` added to those ``at`` which they belong, each moved by the largest."""
        assert dim == 0
        count = torch.bincount(at, minlength=self.shape[0])
        most = self.terms.scatter_reduce(0, at, rows.terms, "amax")
        sizes = (rows.size + rows.error).flatten(1).sum(1)
        largest = sizes == sizes.new_zeros(self.shape[0]).scatter_reduce(0, at, sizes, "amax")[at]
        nodes = self.nodes.scatter_reduce(
            0, at[largest], rows.nodes[largest], "amax", include_self=False
        )
        return replace(
            self,
            nodes=nodes,
            value=self.value.index_add(0, at, rows.value),
            error=self.error.index_add(0, at, rows.error),
            size=self.size.index_add(0, at, rows.size),
            terms=most + count,
            doubt=self.doubt.double().index_add(0, at, rows.doubt.double()) > 0,
        )

    def __matmul__(self, w: Tensor) -> Bounded:
        """By a matrix of constants.

        Errors of a row's columns are independent, as roundings are: as many deviations of each make
        as many of their sum. Added up they would be 10 times as much with each layer of 256. What
        columns have in common (an earlier matrix's input, a norm) adds up so only by weights of
        random signs, as models start with and are looked at; by columns alike it adds up in full.
        """
        size = w.abs()
        return replace(
            self,
            value=self.value @ w,
            error=(self.error.square() @ w.square()).sqrt(),
            size=self.size @ size,
            terms=self.terms + (self.size > 0).sum(1),
        )

    def __add__(self, other: Bounded | Tensor) -> Bounded:
        """The sum of two is moved by the right one."""
        if isinstance(other, Tensor):
            return replace(
                self, value=self.value + other, size=self.size + other.abs(), terms=self.terms + 1
            )
        return replace(
            self,
            value=self.value + other.value,
            error=self.error + other.error,
            size=self.size + other.size,
            terms=self.terms + other.terms + 1,
            nodes=other.nodes,
            doubt=self.doubt | other.doubt,
        )

    def __sub__(self, other: Tensor) -> Bounded:
        return self + -other

    def __mul__(self, other: Bounded | Tensor | float) -> Bounded:
        if isinstance(other, Bounded):
            return _product(self, other)
        factor = torch.as_tensor(other, dtype=torch.float64)
        return self._scaled(factor, 1)

    def __truediv__(self, other: Bounded | Tensor) -> Bounded:
        if isinstance(other, Bounded):
            return _quotient(self, other)
        return self._scaled(1 / other, DIVISION)

    def _scaled(self, factor: Tensor, roundings: int) -> Bounded:
        size = factor.abs()
        return replace(
            self,
            value=self.value * factor,
            error=self.error * size,
            size=self.size * size,
            terms=self.terms + roundings,
        )

    def sum(self, dim: int) -> Bounded:
        """Over a dimension other than the first."""
        return replace(
            self,
            value=self.value.sum(dim),
            error=self.error.sum(dim),
            size=self.size.sum(dim),
            terms=self.terms + self.shape[dim],
        )

    def reshape(self, *shape: int) -> Bounded:
        """The first dimension stays."""
        value, error, size = (t.reshape(shape) for t in (self.value, self.error, self.size))
        return replace(self, value=value, error=error, size=size)

    def unsqueeze(self, dim: int) -> Bounded:
        """A dimension of 1 after the first."""
        value, error, size = (t.unsqueeze(dim) for t in (self.value, self.error, self.size))
        return replace(self, value=value, error=error, size=size)

    # What is not linear.

    def _restart(self, value: Tensor, error: Tensor, others: Sequence[Bounded] = ()) -> Bounded:
        error = error.nan_to_num(UNBOUNDED).clamp_max(UNBOUNDED)
        doubt = self.doubt
        for other in others:
            doubt = doubt | other.doubt
        return replace(
            self, value=value, error=error, size=value.abs(), doubt=doubt,
            terms=torch.zeros_like(self.terms),
        )  # fmt: skip

    def relu(self) -> Bounded:
        """Its kinks in doubt are marked."""
        bound = self.bound()
        crossed = (self.value.abs() <= bound) & (bound > 0)
        rows = crossed.flatten(1).any(1)
        self.again[self.nodes[rows]] = True
        result = self._restart(self.value.relu(), bound * ((self.value > 0) | crossed))
        return replace(result, doubt=self.doubt | rows)

    def exp(self) -> Bounded:
        """Of values of moderate size."""
        value = self.value.exp()
        return self._restart(value, value * (torch.expm1(self.bound()) + FUNCTION * UNIT_ROUNDOFF))

    def norm(self, dim: int, keepdim: bool) -> Bounded:
        """In the l2 norm, of whole rows."""
        assert dim == 1 and keepdim
        value = self.value.norm(dim=1, keepdim=True)
        terms = torch.full_like(value, float(self.shape[1] + FUNCTION))
        return self._restart(
            value, self.bound().norm(dim=1, keepdim=True) + error_factor(terms) * value
        )

    def clamp_min(self, least: float) -> Bounded:
        """It moves no two values apart."""
        return self._restart(self.value.clamp_min(least), self.bound())


def _product(a: Bounded, b: Bounded) -> Bounded:
    """Elementwise product; the bound includes the product of both errors."""
    value, a_bound, b_bound = a.value * b.value, a.bound(), b.bound()
    error = a.value.abs() * b_bound + a_bound * (b.value.abs() + b_bound)
    return a._restart(value, error + UNIT_ROUNDOFF * (value.abs() + error), [b])


def _quotient(a: Bounded, b: Bounded) -> Bounded:
    """Elementwise quotient; unbounded where the divisor may be 0 and the dividend is not."""
    value, a_bound, b_bound = a.value / b.value, a.bound(), b.bound()
    least = (b.value.abs() - b_bound).clamp_min(0)
    error = (a_bound + value.abs() * b_bound) / least
    error = error.where(a.value.abs() + a_bound > 0, 0.0)  # 0 divided by anything
    return a._restart(value, error + DIVISION * UNIT_ROUNDOFF * value.abs(), [b])
