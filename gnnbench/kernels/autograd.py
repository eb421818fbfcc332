"""Types of the ``ctx`` argument of ``torch.autograd.Function``, to which torch gives none."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor


class Context(Protocol):
    """What torch passes as ``ctx`` to ``forward`` and ``backward``; subclasses add attributes."""

    needs_input_grad: tuple[bool, ...]
    saved_tensors: tuple[Tensor, ...]

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for ``backward``; None is kept as None."""

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Declare that ``forward`` changes these inputs in place."""
