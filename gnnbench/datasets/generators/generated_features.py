"""Features of a prepared graph that have no file (``drawn``), made from its metadata and labels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnnbench.core.errors import DataError
from gnnbench.datasets.store import layout

if TYPE_CHECKING:
    import torch

Fill = Callable[[memoryview, int], None]  # (a piece of whole rows, its offset in bytes)


def filler(folder: Path, meta: dict[str, Any], array: str) -> Fill:
    """What writes any rows of an array, each by itself; several may be at work at once.

    Raises ``DataError`` where nothing here makes it.
    """
    entry = meta["arrays"][array]
    makers = {"twin": _twin, "rows": _rows, "seeded": _seeded}
    if array != "features" or entry["made"] not in makers:
        raise DataError(f"'{array}' is made by '{entry['made']}', which this gnnbench has not")
    return makers[entry["made"]](folder, meta)


def _twin(folder: Path, meta: dict[str, Any]) -> Fill:
    import torch

    from gnnbench.datasets.generators.recipe import TwinRecipe
    from gnnbench.datasets.generators.twin import make_spec
    from gnnbench.kernels.twin import fill_features

    spec = make_spec(TwinRecipe(**meta["recipe"]), int(meta["seed"]))

    def fill(part: memoryview, start: int) -> None:
        rows = torch.frombuffer(part, dtype=torch.float32).view(-1, spec.feature_dim)
        fill_features(spec, start // (4 * spec.feature_dim), rows)

    return fill


def _rows(folder: Path, meta: dict[str, Any]) -> Fill:
    return _twin(folder, {**meta, "recipe": meta["recipe"]["features"]})


def _seeded(folder: Path, meta: dict[str, Any]) -> Fill:
    import torch

    from gnnbench.datasets.generators.seeded import SeededFeatures
    from gnnbench.kernels.seeded import fill_features

    width, num_nodes = int(meta["feature_dim"]), int(meta["num_nodes"])
    file = str(layout.file_of(folder, "labels"))
    labels = torch.from_file(file, shared=False, size=num_nodes, dtype=torch.int64)
    table = SeededFeatures(labels.numpy(), width, int(meta["seed"]))
    centres = torch.from_numpy(table.centres)

    def fill(part: memoryview, start: int) -> None:
        rows = torch.frombuffer(part, dtype=torch.float32).view(-1, width)
        fill_features(table.key, labels, centres, start // (4 * width), rows)

    return fill


def make(folder: Path, meta: dict[str, Any], array: str) -> torch.Tensor:
    """The whole array, in memory of this process. Raises as :func:`filler`, and ``RuntimeError``
    where it cannot be allocated."""
    import torch

    from gnnbench.datasets.generators.parallel import all_cores

    entry = meta["arrays"][array]
    fill = filler(folder, meta, array)
    made = torch.empty(tuple(entry["shape"]), dtype=getattr(torch, entry["dtype"]))
    if made.numel() > 0:
        with all_cores():
            fill(made.numpy().data.cast("B"), 0)
    return made
