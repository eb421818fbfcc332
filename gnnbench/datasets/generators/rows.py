"""Tables of feature rows without a graph: ``rows@<count>x<width>``, as ``rows@2Mx128``.

Gathers are measured on them. There are no edges, every node is a training node, and features are
those of a twin with one class (the same bits on every machine and device). ``k`` and ``M`` after
the count mean thousands and millions.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from gnnbench.datasets.generators.on_demand import write_features
from gnnbench.datasets.generators.parallel import generating
from gnnbench.datasets.generators.recipe import TwinRecipe
from gnnbench.datasets.generators.twin import feature_chunks, make_spec
from gnnbench.datasets.store.schema import NewGraph
from gnnbench.schema.arrays import Array

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gnnbench.datasets.store.writer import GraphWriter

VERSION = 1  # another one may give other bits
EXAMPLE = "2Mx128"
COUNTS = range(1, 2**31)
WIDTHS = range(1, 2**16 + 1)
_TIMES = {"": 1, "k": 1000, "M": 1_000_000}
_SHAPE = re.compile(r"(?P<count>[0-9]{1,10})(?P<times>[kM]?)x(?P<width>[0-9]{1,5})")
_CHUNK = 1 << 22  # values


def shape(text: str) -> tuple[int, int] | None:
    """Rows and width of ``2Mx128``; None for another form or range."""
    match = _SHAPE.fullmatch(text)
    if match is None:
        return None
    count, width = int(match["count"]) * _TIMES[match["times"]], int(match["width"])
    return (count, width) if count in COUNTS and width in WIDTHS else None


def short(count: int, width: int) -> str:
    """The shortest form of a shape, such as ``2Mx128``."""
    times = next(t for t in ("M", "k", "") if count % _TIMES[t] == 0)
    return f"{count // _TIMES[times]}{times}x{width}"


def recipe(count: int, width: int) -> dict[str, object]:
    """All parameters that decide the bits, except the seed."""
    return {"generator": VERSION, "features": _twin(count, width).model_dump(mode="json")}


def _twin(count: int, width: int) -> TwinRecipe:
    return TwinRecipe(
        num_nodes=count, num_edges=0, feature_dim=width, num_classes=1, train=count, symmetric=False
    ).scaled(1.0)


def generate(count: int, width: int, seed: int, out: GraphWriter) -> NewGraph:
    """Generate a table into the store and return its description."""
    out.write("indptr", "int64", (count + 1,), _zeros(count + 1))
    out.write("indices", "int32", (0,), [])
    out.write("labels", "int64", (count,), _zeros(count))
    out.write("train_idx", "int64", (count,), _consecutive(count))
    for split in ("val_idx", "test_idx"):
        out.write(split, "int64", (0,), [])
    spec = make_spec(_twin(count, width), seed)
    with generating() as device:
        write_features(out, (count, width), "rows", feature_chunks(spec, device))
    return {
        "num_classes": 1,
        "symmetric": True,
        "source": f"rows of features, generator {VERSION}",
        "licence": "none: generated",
        "features": "generated",
        "labels": "one class",
        "split": "every node is a training node",
        "recipe": recipe(count, width),
    }


def _consecutive(count: int) -> Iterator[Array]:
    for first in range(0, count, _CHUNK):
        yield np.arange(first, min(first + _CHUNK, count), dtype=np.int64)


def _zeros(count: int) -> Iterator[Array]:
    for chunk in _consecutive(count):
        yield np.zeros_like(chunk)
