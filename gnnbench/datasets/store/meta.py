"""Entries of ``meta.json`` about a graph's arrays: counts, symmetry and remarks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

import numpy as np

from gnnbench.datasets.store import layout
from gnnbench.datasets.store.csc import is_symmetric
from gnnbench.datasets.store.schema import GraphDescription, GraphMeta
from gnnbench.schema.arrays import Array
from gnnbench.version import __version__


def graph_meta(
    name: str, num_classes: int, arrays: Mapping[str, Array], about: GraphDescription
) -> GraphMeta:
    """``meta.json`` without ``fingerprint``, ``arrays`` and digest, in the order of the file."""
    if about.get("symmetric") is None:
        about["symmetric"] = is_symmetric(arrays["indptr"], arrays["indices"])
    about.setdefault("source", "")
    about.setdefault("licence", "")
    return {
        "format": layout.FORMAT,
        "format_version": layout.FORMAT_VERSION,
        "created_by": f"gnnbench {__version__}",
        "name": name,
        "num_nodes": len(arrays["indptr"]) - 1,
        "num_edges": len(arrays["indices"]),
        "feature_dim": int(arrays["features"].shape[1]),
        "num_classes": int(num_classes),
        "train": len(arrays["train_idx"]),
        "val": len(arrays["val_idx"]),
        "test": len(arrays["test_idx"]),
        **about,
    }


def array_notes(arrays: Mapping[str, Array]) -> Iterator[str]:
    """Remarks on nodes in two parts of the split and on training nodes without a label."""
    for first, second in itertools.combinations(("train", "val", "test"), 2):
        both = np.isin(arrays[f"{first}_idx"], arrays[f"{second}_idx"], assume_unique=True)
        if both.any():
            yield f"nodes in {first} and in {second}: {np.count_nonzero(both):,}, kept in both"
    train = arrays["train_idx"]
    unlabelled = int(np.count_nonzero(arrays["labels"][train] < 0))
    if unlabelled:
        yield (
            f"training nodes without a label, which no loss counts: {unlabelled:,} of "
            f"{len(train):,}"
        )
