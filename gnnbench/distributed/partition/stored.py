"""Partitions on disk, beside the graph that they are of."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from gnnbench.core.errors import DataError, UsageError
from gnnbench.core.files import atomic_path, write_json
from gnnbench.datasets.graph import Graph
from gnnbench.datasets.store.disk import graph_lock, writing_to
from gnnbench.distributed.partition.assignment import Partition
from gnnbench.distributed.partition.methods import partition

FORMAT = "gnnbench-partition"
FORMAT_VERSION = 1
META = "partition.json"
ARRAYS = ("offsets", "original", "places")


def folder_of(graph: Graph, parts: int, method: str, seed: int) -> Path:
    """Where a partition of a graph of the store lies: ``GRAPH.partitions/METHOD-PARTS-seedSEED``.

    Raises ``UsageError`` for a graph that is not of the store.
    """
    if graph.path is None:
        raise UsageError(
            f"graph '{graph.name}' is not in the store, so that nothing can lie beside it; keep the"
            " Partition itself, or import the graph"
        )
    return _beside(graph.path, parts, method, seed)


def _beside(path: Path, parts: int, method: str, seed: int) -> Path:
    return path.with_name(f"{path.name}.partitions") / f"{method}-{parts}-seed{seed}"


def known_digest(path: Path, parts: int, method: str, seed: int) -> str | None:
    """``Partition.digest`` of the one that lies beside the graph in a folder, as it was stored;
    None where there is none, or it is older than that note."""
    try:
        meta = json.loads((_beside(path, parts, method, seed) / META).read_bytes())
        return str(meta["digest"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def save(graph: Graph, made: Partition) -> Path:
    """Write a partition beside its graph, ``partition.json`` last; the folder.

    Raises ``UsageError`` where it is not of this graph, or nothing can be written there.
    """
    if made.num_nodes != graph.num_nodes:
        raise UsageError(
            f"the partition has {made.num_nodes} nodes and graph '{graph.name}' {graph.num_nodes};"
            " save it beside the graph that it was made of"
        )
    folder = folder_of(graph, made.parts, made.method, made.seed)
    with writing_to(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / META).unlink(missing_ok=True)
        for array in ARRAYS:
            with atomic_path(folder / f"{array}.npy") as path, path.open("wb") as file:
                np.save(file, getattr(made, array).numpy())
        write_json(
            folder / META,
            {
                "format": FORMAT,
                "format_version": FORMAT_VERSION,
                "graph": graph.meta.get("meta_sha256"),
                "num_nodes": made.num_nodes,
                "parts": made.parts,
                "method": made.method,
                "seed": made.seed,
                "digest": made.digest(),
                "made_s": made.made_s,
            },
        )
    return folder


def load(graph: Graph, parts: int, method: str = "metis", seed: int = 0) -> Partition | None:
    """The partition that is stored beside a graph, mapped; None where there is none.

    Raises ``UsageError`` for a graph that is not of the store, ``DataError`` for a partition that
    is damaged or of another graph.
    """
    folder = folder_of(graph, parts, method, seed)
    if not (folder / META).is_file():
        return None
    again = f"delete {folder} and make the partition again"
    try:
        meta = json.loads((folder / META).read_bytes())
        if meta["format"] != FORMAT or meta["format_version"] != FORMAT_VERSION:
            raise DataError(f"{folder} has a format that this gnnbench does not read; {again}")
        if meta["graph"] != graph.meta.get("meta_sha256"):
            raise DataError(f"{folder} is of another graph '{graph.name}'; {again}")
        offsets, original, places = (_mapped(folder / f"{array}.npy") for array in ARRAYS)
    except (OSError, ValueError, KeyError, TypeError):
        raise DataError(f"{folder} is damaged; {again}") from None
    found = Partition(offsets, original, places, method, seed, meta.get("made_s"))
    if not _sound(found, graph.num_nodes, parts):
        raise DataError(f"{folder} is damaged; {again}")
    return found


def load_or_make(graph: Graph, parts: int, method: str = "metis", seed: int = 0) -> Partition:
    """The stored partition of a graph of the store, made and stored where it is not there yet.

    Several processes may call it at once: one makes it. Raises as :func:`load` and
    ``gnnbench.distributed.partition.methods.partition``.
    """
    with graph_lock(folder_of(graph, parts, method, seed)):
        found = load(graph, parts, method, seed)
        if found is None:
            began = time.perf_counter()
            found = partition(graph, parts, method, seed)
            found = replace(found, made_s=time.perf_counter() - began)
            save(graph, found)
    return found


def _mapped(path: Path) -> Tensor:
    array = np.load(path, mmap_mode="c", allow_pickle=False)  # torch wants to be able to write
    if array.dtype != np.int64 or array.ndim != 1:
        raise ValueError
    return torch.from_numpy(np.asarray(array))


def _sound(found: Partition, num_nodes: int, parts: int) -> bool:
    """Whether it is a numbering of all nodes: then no id of it leads outside of an array."""
    offsets, original, places = found.offsets, found.original, found.places
    if offsets.numel() != parts + 1 or original.numel() != num_nodes or places.numel() != num_nodes:
        return False
    ends = int(offsets[0]) == 0 and int(offsets[-1]) == num_nodes
    if not ends or bool((offsets.diff() < 0).any()):
        return False
    if num_nodes and not 0 <= int(original.min()) <= int(original.max()) < num_nodes:
        return False
    return torch.equal(places[original], torch.arange(num_nodes))
