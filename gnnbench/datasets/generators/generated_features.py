"""Generate features that have no file from a prepared graph's metadata and labels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from gnnbench.core.errors import DataError
from gnnbench.datasets.store import layout
from gnnbench.datasets.store.schema import GraphMeta

if TYPE_CHECKING:
    import torch

Fill = Callable[[memoryview, int], None]  # (memory of whole rows, their offset in bytes)


def filler(folder: Path, meta: GraphMeta, array: str) -> Fill:
    """A thread-safe function that fills memory with any rows of an array.

    Raises ``DataError`` for an unknown generator.
    """
    generator = meta["arrays"][array]["made"]
    fillers = {"twin": _twin, "rows": _rows, "seeded": _seeded}
    if array != "features" or generator not in fillers:
        raise DataError(f"'{array}' is made by '{generator}', which this gnnbench lacks")
    return fillers[generator](folder, meta)


def _twin(folder: Path, meta: GraphMeta) -> Fill:
    return _twin_filler(meta["recipe"], meta["seed"])


def _rows(folder: Path, meta: GraphMeta) -> Fill:
    return _twin_filler(meta["recipe"]["features"], meta["seed"])


def _twin_filler(recipe: object, seed: int) -> Fill:
    import torch

    from gnnbench.datasets.generators.recipe import TwinRecipe
    from gnnbench.datasets.generators.twin import make_spec
    from gnnbench.kernels.twin import fill_features

    spec = make_spec(TwinRecipe.model_validate(recipe), int(seed))

    def fill(memory: memoryview, start: int) -> None:
        rows = torch.frombuffer(memory, dtype=torch.float32).view(-1, spec.feature_dim)
        fill_features(spec, start // (4 * spec.feature_dim), rows)

    return fill


def _seeded(folder: Path, meta: GraphMeta) -> Fill:
    import torch

    from gnnbench.datasets.generators.seeded import SeededFeatures
    from gnnbench.kernels.seeded import fill_features

    width, num_nodes = meta["feature_dim"], meta["num_nodes"]
    file = str(layout.file_of(folder, "labels"))
    labels = torch.from_file(file, shared=False, size=num_nodes, dtype=torch.int64)
    table = SeededFeatures(labels.numpy(), width, int(meta["seed"]))
    centres = torch.from_numpy(table.centres)

    def fill(memory: memoryview, start: int) -> None:
        rows = torch.frombuffer(memory, dtype=torch.float32).view(-1, width)
        fill_features(table.key, labels, centres, start // (4 * width), rows)

    return fill


def generate_array(folder: Path, meta: GraphMeta, array: str) -> torch.Tensor:
    """Generate a whole array in memory of this process.

    Raises as :func:`filler`, and ``RuntimeError`` if the memory cannot be allocated.
    """
    import torch

    from gnnbench.datasets.generators.parallel import all_cores

    entry = meta["arrays"][array]
    fill = filler(folder, meta, array)
    values = torch.empty(tuple(entry["shape"]), dtype=getattr(torch, entry["dtype"]))
    if values.numel() > 0:
        with all_cores():
            fill(values.numpy().data.cast("B"), 0)
    return values
