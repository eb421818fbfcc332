"""Arrays of a prepared graph that have no file: made from its ``meta.json``, piece by piece."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gnnbench.errors import DataError

if TYPE_CHECKING:
    import torch

Fill = Callable[[memoryview, int], None]  # (a piece of whole rows, its offset in bytes)


def filler(meta: dict[str, Any], array: str) -> Fill:
    """What writes any rows of an array, each by itself; several may be at work at once.

    Raises ``DataError`` where nothing here makes it.
    """
    entry = meta["arrays"][array]
    if (array, entry["made"]) != ("features", "twin"):
        raise DataError(f"'{array}' is made by '{entry['made']}', which this gnnbench has not")
    import torch

    from gnnbench.data.generators.recipe import TwinRecipe
    from gnnbench.data.generators.twin import make_spec
    from gnnbench.ops.twin import fill_features

    spec = make_spec(TwinRecipe(**meta["recipe"]), int(meta["seed"]))

    def fill(part: memoryview, start: int) -> None:
        rows = torch.frombuffer(part, dtype=torch.float32).view(-1, spec.feature_dim)
        fill_features(spec, start // (4 * spec.feature_dim), rows)

    return fill


def make(meta: dict[str, Any], array: str) -> torch.Tensor:
    """The whole array, in memory of this process. Raises as :func:`filler`, and ``RuntimeError``
    where it cannot be allocated."""
    import torch

    entry = meta["arrays"][array]
    fill = filler(meta, array)
    made = torch.empty(tuple(entry["shape"]), dtype=getattr(torch, entry["dtype"]))
    if made.numel() > 0:
        fill(made.numpy().data.cast("B"), 0)
    return made
