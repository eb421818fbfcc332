"""Synthetic twins: generated graphs with the published properties of a real dataset.

A twin has the published numbers of nodes and edges (scaled), no self-loops and no parallel edges.
Its bits do not depend on the machine or the number of threads. Its name always differs from that of
the real graph: ``products~twin``, ``products~twin@0.05``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from gnnbench.datasets.generators.on_demand import write_features
from gnnbench.datasets.generators.parallel import generating, gpu_bytes, host_chunks
from gnnbench.datasets.generators.recipe import TwinRecipe
from gnnbench.datasets.store.schema import NewGraph
from gnnbench.schema.arrays import Array

if TYPE_CHECKING:
    from gnnbench.datasets.store.writer import GraphWriter
    from gnnbench.kernels.twin import TwinSpec

_LAW_POINTS = 34  # kLawPoints of native/include/gnnbench/twin.h
_LAW_MEAN = 1 << 13  # mean weight, so that sums over 2^31 nodes keep 64 bits
_LAW_MAX = 1 << 30
_LIMIT_MAX = (1 << 31) - 1
_FEATURE_BYTES = 1 << 26


def share_of_65536(share: float) -> int:
    """A share in units of 1/65536, rounded to even."""
    return round(share * 65536)


def law_points(ratio: float | Sequence[float], cap: float, positive: int) -> list[int]:
    """Weights of a degree law at rank fractions 1, 1/2, 1/4 ..., integers with mean about 2^13.

    ``ratio`` is the growth from octave to octave (the last one repeats), ``cap`` the largest weight
    over the mean (0: no cap), ``positive`` the number of ranks.
    """
    ratios = ratio if isinstance(ratio, Sequence) else [ratio]
    one = 1 << 32
    shape = [one]
    for j in range(_LAW_POINTS - 1):
        shape.append(shape[-1] * share_of_65536(ratios[min(j, len(ratios) - 1)]) >> 16)
    octaves = min(positive.bit_length(), _LAW_POINTS - 1)

    def scaled_mean(top: int) -> int:
        """2^octaves+1 times the mean of the law, linear inside octaves, cut off at ``top``."""
        cut = [min(w, top) for w in shape]
        parts = sum((cut[j] + cut[j + 1]) << (octaves - j - 1) for j in range(octaves))
        return parts + 2 * cut[octaves]

    top = shape[octaves]
    if cap:
        # The largest top that is at most cap times the mean that it leaves.
        limit = Fraction(str(cap)) / (1 << (octaves + 1))
        low, high = one, top
        while low < high:
            middle = (low + high + 1) // 2
            if middle <= limit * scaled_mean(middle):
                low = middle
            else:
                high = middle - 1
        top = low
    mean = scaled_mean(top)
    scale = _LAW_MEAN << (octaves + 1)
    return [max(1, min(_LAW_MAX, min(w, top) * scale // mean)) for w in shape]


def community_ptr(recipe: TwinRecipe) -> list[int]:
    """Ranges of positions of a scaled recipe's communities, ``[communities + 1]``."""
    skew = share_of_65536(recipe.class_skew)
    sizes = [
        (1 << 48) // (65536 + skew * (c % recipe.num_classes)) for c in range(recipe.communities)
    ]
    total, upto, ptr = sum(sizes), 0, [0]
    for size in sizes:
        upto += size
        ptr.append(recipe.num_nodes * upto // total)
    return ptr


def make_spec(recipe: TwinRecipe, seed: int) -> TwinSpec:
    """The generator's integers for a scaled recipe."""
    import torch

    from gnnbench.kernels.rng import key
    from gnnbench.kernels.twin import TwinSpec

    def tensor(values: list[int]) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.int64)

    n, communities = recipe.num_nodes, recipe.communities
    regions = min(recipe.regions, communities)
    rows = recipe.num_edges // 2 if recipe.symmetric else recipe.num_edges
    leaving = (rows * share_of_65536(recipe.mixing) >> 16) if communities > 1 else 0
    far = (leaving * share_of_65536(recipe.region_mixing) >> 16) if regions > 1 else 0
    positive = n - (n * share_of_65536(recipe.isolated) >> 16)
    in_law = law_points(recipe.degree_ratio, recipe.degree_cap, positive)
    if recipe.symmetric:
        out_law, out_positive, tied = in_law, positive, 65536
    else:
        out_positive = n - (n * share_of_65536(recipe.out_isolated) >> 16)
        out_law = law_points(recipe.out_degree_ratio, recipe.out_degree_cap, out_positive)
        tied = share_of_65536(recipe.degree_tie)
    # A node has at most half of its community as neighbours inside; the excess goes outside.
    leaving_share = Fraction(leaving, rows) if leaving else Fraction(1)
    boost = (1 - leaving_share) / leaving_share

    def limit(nodes_of_weight: int) -> int:
        if leaving_share == 1:
            return _LIMIT_MAX
        mean = Fraction(_LAW_MEAN * nodes_of_weight, n)
        return min(_LIMIT_MAX, int(65536 * mean / (2 * (1 - leaving_share)) * n / recipe.num_edges))

    return TwinSpec(
        key=key(seed, 0, "twin"),
        num_nodes=n,
        num_edges=recipe.num_edges,
        symmetric=recipe.symmetric,
        community_ptr=tensor(community_ptr(recipe)),
        region_ptr=tensor([communities * r // regions for r in range(regions + 1)]),
        in_law=tensor(in_law),
        out_law=tensor(out_law),
        in_positive=positive,
        out_positive=out_positive,
        tied=tied,
        in_limit=limit(positive),
        out_limit=limit(out_positive),
        boost=min(1 << 20, int(65536 * boost)),
        level_edges=tensor([rows - leaving, leaving - far, far]),
        wide_ids=recipe.id_dtype == "int64",
        num_classes=recipe.num_classes,
        label_noise=share_of_65536(recipe.label_noise),
        home=max(1, communities * share_of_65536(recipe.train_home) >> 16),
        locality=share_of_65536(recipe.train_locality),
        degree_bias=share_of_65536(recipe.train_degree_bias),
        splits=(int(recipe.train), int(recipe.val), int(recipe.test)),
        signal=round(recipe.signal * 256),
        feature_dim=recipe.feature_dim,
    )


def feature_chunks(spec: TwinSpec, device: str = "cpu") -> Iterator[Array]:
    """All features in float32 chunks of about 64 MiB."""
    from gnnbench.kernels.twin import features

    step = max(1, _FEATURE_BYTES // (4 * spec.feature_dim))
    for first in range(0, spec.num_nodes, step):
        yield features(spec, first, min(step, spec.num_nodes - first), device).cpu().numpy()


def _labels_and_splits(recipe: TwinRecipe, spec: TwinSpec, device: str = "cpu") -> dict[str, Array]:
    from gnnbench.kernels import twin as ops

    labels = ops.labels(spec, device).cpu().numpy()
    parts = [t.cpu().numpy() for t in ops.splits(spec, device)]
    if not recipe.labels_outside_splits:
        kept = np.concatenate(parts)
        known = labels[kept]
        labels.fill(-1)
        labels[kept] = known
    return dict(zip(("labels", "train_idx", "val_idx", "test_idx"), (labels, *parts), strict=True))


def generate_arrays(recipe: TwinRecipe, scale: float = 1.0, seed: int = 0) -> dict[str, Array]:
    """A twin in memory: the arrays of :class:`gnnbench.datasets.graph.Graph` by name.

    Raises ``UsageError`` if the scaled recipe is not a graph.
    """
    from gnnbench.kernels import twin as ops

    scaled = recipe.scaled(scale)
    spec = make_spec(scaled, seed)
    indptr, indices = ops.graph(spec)
    return {
        "indptr": indptr.numpy(),
        "indices": indices.numpy(),
        "features": ops.features(spec, 0, spec.num_nodes).numpy(),
        **_labels_and_splits(scaled, spec),
    }


def generate(recipe: TwinRecipe, scale: float, seed: int, out: GraphWriter) -> NewGraph:
    """Generate a twin into the store and return its description.

    Arrays that an interrupted call completed are kept. Raises ``UsageError`` if the scaled recipe
    is not a graph.
    """
    from gnnbench.kernels import twin as ops

    scaled = recipe.scaled(scale)
    spec = make_spec(scaled, seed)
    n, edges = spec.num_nodes, spec.num_edges
    with generating(edges, gpu_bytes(n, edges)) as device:
        if not out.done("indptr", "indices"):
            indptr, indices = ops.graph(spec, device)
            out.write("indptr", "int64", (n + 1,), host_chunks(indptr))
            out.write("indices", scaled.id_dtype, (edges,), host_chunks(indices))
            del indptr, indices
        if not out.done("labels", "train_idx", "val_idx", "test_idx"):
            for name, values in _labels_and_splits(scaled, spec, device).items():
                out.write(name, "int64", (len(values),), [values])
        write_features(out, (n, spec.feature_dim), "twin", feature_chunks(spec, device))
    return {
        "num_classes": scaled.num_classes,
        "symmetric": scaled.symmetric,
        "source": f"synthetic twin, generator {scaled.generator}, scale {scale:g}",
        "licence": "none: generated, contains nothing of the real dataset",
        "features": "generated",
        "labels": "generated",
        "split": "generated",
        "recipe": scaled.model_dump(mode="json"),
    }
