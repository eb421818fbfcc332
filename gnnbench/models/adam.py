"""Adam for a model's parameters, without the imports of torch's class."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.optim.adam import adam


class Adam:
    """``torch.optim.Adam`` with its defaults (Kingma and Ba, arXiv:1412.6980), bit for bit.

    It calls the function that the class calls. The class itself imports torch's compiler when it
    is created, which costs each worker process a second of CPU time for nothing. ``capturable``,
    for parameters on a GPU: the step counts are kept there, so that a CUDA graph can capture an
    update. Bias corrections are then float32: equal within rounding.
    """

    def __init__(
        self, parameters: Iterable[Tensor], lr: float, *, capturable: bool = False
    ) -> None:
        self._lr = lr
        self._capturable = capturable
        self._parameters = list(parameters)
        # On the CPU, as in torch, where the host reads them.
        self._steps = [
            torch.tensor(0.0, device=p.device if capturable else "cpu") for p in self._parameters
        ]
        self._means = [torch.zeros_like(p) for p in self._parameters]
        self._squares = [torch.zeros_like(p) for p in self._parameters]

    @property
    def state(self) -> list[Tensor]:
        """Tensors that an update changes in addition to the parameters."""
        return [*self._steps, *self._means, *self._squares]

    @property
    def means(self) -> Tensor:
        """A copy of the gradients' running means (the first moments), one after the other."""
        return torch.cat([mean.flatten() for mean in self._means])

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self._parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Update every parameter that has a gradient."""
        own = zip(self._parameters, self._means, self._squares, self._steps, strict=True)
        have = [(p, p.grad, m, v, t) for p, m, v, t in own if p.grad is not None]
        if not have:
            return
        parameters, gradients, means, squares, steps = map(list, zip(*have, strict=True))
        adam(
            parameters, gradients, means, squares, [], steps, amsgrad=False, beta1=0.9,
            beta2=0.999, lr=self._lr, weight_decay=0.0, eps=1e-8, maximize=False,
            capturable=self._capturable,
        )  # fmt: skip
