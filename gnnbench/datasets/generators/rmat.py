"""R-MAT graphs: ``rmat@<scale>``, 2^scale nodes, the same bits on every machine and device;
``rmat@<scale>x<degree>x<dims>`` also sets the mean degree and the width of the features.

Chakrabarti, Zhan and Faloutsos, "R-MAT: A Recursive Model for Graph Mining", SDM'04, with the
Graph500's probabilities and permuted ids; parallel edges and self-loops are kept. An edge source ->
target falls, bit by bit from the lowest, into one of four quadrants:

    target's bit     0      1
    source's bit 0   0.57   0.19
                 1   0.19   0.05
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gnnbench.datasets.generators.on_demand import write_features
from gnnbench.datasets.generators.parallel import generating, gpu_bytes, host_chunks
from gnnbench.datasets.generators.seeded import seeded_features, seeded_labels
from gnnbench.datasets.generators.twin import share_of_65536
from gnnbench.datasets.store.schema import NewGraph
from gnnbench.kernels import rng

if TYPE_CHECKING:
    from torch import Tensor

    from gnnbench.datasets.store.writer import GraphWriter

VERSION = 1  # another one may give other bits
DEFAULT_SCALE = 21
SCALES = range(4, 31)
DEGREES = range(1, 1 << 10)
DIMS = range(1, 1 << 14)
FULL_EDGES = 123_000_000  # at the default scale; others keep the mean degree
FEATURE_DIM = 1  # these graphs are for sampling
NUM_CLASSES = 2

# Upper ends of the first three quadrants in 1/65536: (0, 0), (0, 1), (1, 0).
_ENDS = tuple(share_of_65536(p) for p in (0.57, 0.76, 0.95))


@dataclass(frozen=True)
class Size:
    """Parameters after the ``@`` of a name; ``degree`` 0: the default mean degree."""

    scale: int = DEFAULT_SCALE
    degree: int = 0
    dims: int = FEATURE_DIM

    @classmethod
    def parse(cls, text: str) -> Size | None:
        """``27`` or ``27x12x128``; None for anything else."""
        parts = text.split("x")
        if len(parts) not in (1, 3) or not all(part.isdecimal() for part in parts):
            return None
        numbers = [int(part) for part in parts]
        ranges = zip(numbers, (SCALES, DEGREES, DIMS), strict=False)
        return cls(*numbers) if all(number in valid for number, valid in ranges) else None

    def __str__(self) -> str:
        return f"{self.scale}x{self.degree}x{self.dims}" if self.degree else f"{self.scale}"


def counts(scale: int, degree: int = 0) -> tuple[int, int]:
    """Numbers of nodes and edges."""
    shift = DEFAULT_SCALE - scale
    if degree:
        return 1 << scale, degree << scale
    return 1 << scale, FULL_EDGES >> shift if shift >= 0 else FULL_EDGES << -shift


def recipe(size: Size) -> dict[str, object]:
    """All parameters that decide the bits, except the seed."""
    nodes, edges = counts(size.scale, size.degree)
    return {
        "generator": VERSION, "scale": size.scale, "nodes": nodes, "edges": edges,
        "ends": list(_ENDS), "feature_dim": size.dims, "num_classes": NUM_CLASSES,
    }  # fmt: skip


def graph(scale: int, seed: int, device: str = "cpu", degree: int = 0) -> tuple[Tensor, Tensor]:
    """CSC of in-neighbours on the device: int64 ``indptr``, int32 ``indices``, rows sorted.

    Bit i of an edge's ends comes from 16 bits of word ``i % 8 // 2`` of the Philox block with
    counter (edge low, edge high, i // 8, 0), the lower half for even i. Raises ``UsageError``.
    """
    from gnnbench.kernels import rmat as ops

    nodes, edges = counts(scale, degree)
    names = rng.permutation(nodes, rng.key(seed, 0, "rmat-names"), device)
    return ops.graph(rng.key(seed, 0, "rmat"), scale, edges, _ENDS, names)


def generate(size: Size, seed: int, out: GraphWriter) -> NewGraph:
    """Generate a graph into the store and return its description.

    Every node with an in-neighbour is a training node.
    """
    nodes, edges = counts(size.scale, size.degree)
    if not out.done("indptr", "indices", "train_idx"):
        with generating(edges, gpu_bytes(nodes, edges)) as device:
            indptr, indices = graph(size.scale, seed, device, size.degree)
            out.write("indptr", "int64", (nodes + 1,), host_chunks(indptr))
            out.write("indices", "int32", (edges,), host_chunks(indices))
            training = indptr.diff().nonzero().flatten()
            out.write("train_idx", "int64", (training.numel(),), host_chunks(training))
            del indptr, indices, training
    for split in ("val_idx", "test_idx"):
        out.write(split, "int64", (0,), [])
    out.write("labels", "int64", (nodes,), seeded_labels(nodes, NUM_CLASSES, seed))
    rows = seeded_features(out.read("labels"), size.dims, seed)
    write_features(out, (nodes, size.dims), "seeded", rows)
    return {
        "num_classes": NUM_CLASSES,
        "symmetric": False,
        "source": f"R-MAT, generator {VERSION}, scale {size}",
        "licence": "none: generated",
        "features": "generated",
        "labels": "generated",
        "split": "every node with an in-neighbour is a training node",
        "recipe": recipe(size),
    }
