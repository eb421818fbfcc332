"""Tables of feature rows without a graph: ``rows@<count>x<width>``, as ``rows@2Mx128``.

What gathers are measured on: no edges, every node a training node, features those of a twin of one
class (the same bits on every machine and device). ``k`` and ``M`` after the count are thousands and
millions.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from gnnbench.datasets.generators.on_demand import write_features
from gnnbench.datasets.generators.parallel import making
from gnnbench.datasets.generators.recipe import TwinRecipe
from gnnbench.datasets.generators.twin import feature_pieces, make_spec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gnnbench.datasets.store.writer import GraphWriter

VERSION = 1  # another one may give other bits
EXAMPLE = "2Mx128"
COUNTS = range(1, 2**31)
WIDTHS = range(1, 2**16 + 1)
_TIMES = {"": 1, "k": 1000, "M": 1_000_000}
_SHAPE = re.compile(r"(?P<count>[0-9]{1,10})(?P<times>[kM]?)x(?P<width>[0-9]{1,5})")
_PIECE = 1 << 22  # values


def shape(text: str) -> tuple[int, int] | None:
    """Rows and width of ``2Mx128``; None where it is not of that form, or out of range."""
    match = _SHAPE.fullmatch(text)
    if match is None:
        return None
    count, width = int(match["count"]) * _TIMES[match["times"]], int(match["width"])
    return (count, width) if count in COUNTS and width in WIDTHS else None


def short(count: int, width: int) -> str:
    """The shape as it is written shortest: ``2Mx128``."""
    times = next(t for t in ("M", "k", "") if count % _TIMES[t] == 0)
    return f"{count // _TIMES[times]}{times}x{width}"


def recipe(count: int, width: int) -> dict[str, Any]:
    """What decides every bit, besides the seed."""
    return {"generator": VERSION, "features": _twin(count, width).model_dump(mode="json")}


def _twin(count: int, width: int) -> TwinRecipe:
    return TwinRecipe(
        num_nodes=count, num_edges=0, feature_dim=width, num_classes=1, train=count, symmetric=False
    ).scaled(1.0)


def generate(count: int, width: int, seed: int, out: GraphWriter) -> dict[str, Any]:
    """Generate straight into the store, rows in pieces, where ``making`` says.

    Returns what ``out.finish`` is told.
    """
    out.write("indptr", "int64", (count + 1,), _zeros(count + 1))
    out.write("indices", "int32", (0,), [])
    out.write("labels", "int64", (count,), _zeros(count))
    out.write("train_idx", "int64", (count,), _counting(count))
    for split in ("val_idx", "test_idx"):
        out.write(split, "int64", (0,), [])
    spec = make_spec(_twin(count, width), seed)
    with making() as device:
        write_features(out, (count, width), "rows", feature_pieces(spec, device))
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


def _counting(count: int) -> Iterator[np.ndarray]:
    for first in range(0, count, _PIECE):
        yield np.arange(first, min(first + _PIECE, count), dtype=np.int64)


def _zeros(count: int) -> Iterator[np.ndarray]:
    for piece in _counting(count):
        yield np.zeros_like(piece)
