"""Partitions on disk, next to their graph."""

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
    """Return the folder of a partition: ``GRAPH.partitions/METHOD-PARTS-seedSEED``.

    Raises ``UsageError`` for a graph that is not in the store.
    """
    if graph.path is None:
        raise UsageError(
            f"graph '{graph.name}' is not in the store, so its partitions have no folder; import"
            " the graph, or pass the Partition itself"
        )
    return _partition_folder(graph.path, parts, method, seed)


def _partition_folder(path: Path, parts: int, method: str, seed: int) -> Path:
    return path.with_name(f"{path.name}.partitions") / f"{method}-{parts}-seed{seed}"


def known_digest(path: Path, parts: int, method: str, seed: int) -> str | None:
    """Return the recorded ``Partition.digest`` of a stored partition of the graph at ``path``.

    None if it is not stored, or was stored before digests were recorded.
    """
    try:
        meta = json.loads((_partition_folder(path, parts, method, seed) / META).read_bytes())
        return str(meta["digest"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def save(graph: Graph, made: Partition) -> Path:
    """Write a partition next to its graph, ``partition.json`` last. Returns the folder.

    Raises ``UsageError`` if the partition is not of this graph, or the folder is not writable.
    """
    if made.num_nodes != graph.num_nodes:
        raise UsageError(
            f"the partition has {made.num_nodes} nodes and graph '{graph.name}' {graph.num_nodes};"
            " save it with the graph that it was made of"
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
    """Map a stored partition of a graph; None if it is not stored.

    Raises ``UsageError`` for a graph that is not in the store, ``DataError`` for a partition that
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
    stored = Partition(offsets, original, places, method, seed, meta.get("made_s"))
    if not _is_valid(stored, graph.num_nodes, parts):
        raise DataError(f"{folder} is damaged; {again}")
    return stored


def load_or_make(graph: Graph, parts: int, method: str = "metis", seed: int = 0) -> Partition:
    """Return the stored partition of a graph; make and store it if it is missing.

    Several processes may call it at once; one makes it. Raises as :func:`load` and
    ``gnnbench.distributed.partition.methods.partition``.
    """
    with graph_lock(folder_of(graph, parts, method, seed)):
        stored = load(graph, parts, method, seed)
        if stored is not None:
            return stored
        start_s = time.perf_counter()
        made = partition(graph, parts, method, seed)
        made = replace(made, made_s=time.perf_counter() - start_s)
        save(graph, made)
    return made


def _mapped(path: Path) -> Tensor:
    array = np.load(path, mmap_mode="c", allow_pickle=False)  # torch requires writable memory
    if array.dtype != np.int64 or array.ndim != 1:
        raise ValueError
    return torch.from_numpy(np.asarray(array))


def _is_valid(stored: Partition, num_nodes: int, parts: int) -> bool:
    """Whether a partition numbers all nodes, so that each of its ids is a valid index."""
    offsets, original, places = stored.offsets, stored.original, stored.places
    if offsets.numel() != parts + 1 or original.numel() != num_nodes or places.numel() != num_nodes:
        return False
    ends = int(offsets[0]) == 0 and int(offsets[-1]) == num_nodes
    if not ends or bool((offsets.diff() < 0).any()):
        return False
    if num_nodes and not 0 <= int(original.min()) <= int(original.max()) < num_nodes:
        return False
    return torch.equal(places[original], torch.arange(num_nodes))
