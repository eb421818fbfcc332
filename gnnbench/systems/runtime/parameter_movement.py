"""How far training moves the parameters of a model."""

from __future__ import annotations

import torch
from torch import Tensor

from gnnbench.models.stack import Stack


class ParameterMovement:
    """Measures how far parameters move between two calls of ``take``.

    ``before`` are copies of the parameters at the last call.
    """

    def __init__(self, model: Stack) -> None:
        self._model = model
        self.before = self._copies()

    def _copies(self) -> list[Tensor]:
        return [p.detach().clone() for p in self._model.parameters()]

    def take(self) -> list[float]:
        """Return the Frobenius norm of each layer's change since the last call.

        By layer, because frameworks order the parameters within a layer differently.
        """
        before, self.before = self.before, self._copies()
        changes = iter([(now - old).norm() for old, now in zip(before, self.before, strict=True)])
        layers = [[next(changes) for _ in layer.parameters()] for layer in self._model.layers]
        return torch.stack([torch.stack(layer).norm() for layer in layers]).tolist()

    def norm(self) -> float:
        """Return the Frobenius norm of all parameters at the last ``take``."""
        return float(torch.stack([p.norm() for p in self.before]).norm())
