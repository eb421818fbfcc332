"""GraphBolt's features in a file: read by io_uring or through a mapping."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Protocol, cast

import numpy as np
import torch
from torch import Tensor

from gnnbench.core.counters import WRITE_TIME, Metric
from gnnbench.core.errors import MissingError, UnsupportedError
from gnnbench.core.files import TEMPORARY
from gnnbench.core.job import Job
from gnnbench.core.minibatch import Batch
from gnnbench.features.base import FeatureStore
from gnnbench.features.policies.policy import Footprint
from gnnbench.kernels.dgl_import import require_graphbolt

CACHED_BATCHES = 2  # GraphBolt's cache waits forever for a batch that it has no room for


class Feature(Protocol):
    """GraphBolt's interface of a feature, as far as this package uses it."""

    def read(self, ids: Tensor) -> Tensor:
        """Rows ``[n, feature_dim]`` of ``ids``, on the host."""


class BoltFile(FeatureStore):
    """Rows of a ``.npy`` file of the table, read on the host; for a GPU then copied.

    ``method`` is ``io_uring`` (``DiskBasedFeature``, which reads past the page cache) or ``mmap``
    (``TorchBasedFeature`` over the mapped file). ``cache_bytes`` is the capacity of
    GraphBolt's ``CPUCachedFeature`` before it, 0 for none.

    The file is written next to the graph, and removed once GraphBolt has opened it: its blocks are
    freed with the store. Raises ``MissingError`` if GraphBolt lacks a class, ``UnsupportedError``
    if it cannot read the file or the file cannot be written.
    """

    def __init__(self, job: Job, method: str, cache_bytes: int = 0) -> None:
        super().__init__(job)
        bolt = require_graphbolt(job.device.type)
        names = ["DiskBasedFeature" if method == "io_uring" else "TorchBasedFeature"]
        names += ["CPUFeatureCache", "CPUCachedFeature"] * (cache_bytes > 0)
        if absent := [name for name in names if not hasattr(bolt, name)]:
            raise MissingError(
                f"the installed GraphBolt has no {absent[0]}; install a newer DGL that is built for"
                " this torch (https://www.dgl.ai/pages/start.html)"
            )
        if method == "io_uring" and not _has_io_uring():
            raise UnsupportedError(
                "features 'graphbolt': GraphBolt cannot use io_uring here; allow it in the kernel"
                " (kernel.io_uring_disabled=0) and in the container (seccomp), install a GraphBolt"
                " that is built with liburing, or give features.file=mmap"
            )
        begin = time.perf_counter()
        with _written(job, bolt) as path:
            self._seconds = time.perf_counter() - begin
            self._feature: Feature | None = _opened(bolt, path, method)
        features = job.graph.features
        self._cache = None
        if cache_bytes:
            self._cached_where = "host" if job.device.type == "cpu" else "host_copy"
            self._cached_rows = max(cache_bytes // self._row_bytes, 1)
            shape = (self._cached_rows, *features.shape[1:])
            self._cache = bolt.CPUFeatureCache(shape, features.dtype)
            self._feature = bolt.CPUCachedFeature(self._feature, self._cache)

    def prepare(self, footprint: Footprint) -> dict[Metric, float]:
        """Return the seconds of writing the file."""
        return {WRITE_TIME: self._seconds}

    def load(self, batch: Batch) -> Tensor:
        """Rows ``[n, feature_dim]``, on the compute device."""
        assert self._feature is not None
        ids = batch.input_nodes.cpu()
        missed = ids.numel()
        if self._cache is None:
            rows = self._feature.read(ids)
        else:
            if missed * CACHED_BATCHES > self._cached_rows:
                raise UnsupportedError(
                    f"features 'graphbolt': a batch has {missed:,} nodes, and the cache"
                    f" {self._cached_rows:,} rows, which must be those of several batches; give a"
                    " larger features.cache_gib, or 0"
                )
            before = self._cache.total_miss
            rows = self._feature.read(ids)
            missed = self._cache.total_miss - before
            self.count(ids.numel() - missed, self._cached_where)
        self.count(missed, "disk")
        return rows.to(self.job.device, non_blocking=True)

    def close(self) -> None:
        """Close the file, which frees its blocks, and free the cache."""
        self._feature = self._cache = None


def _has_io_uring() -> bool:
    """Whether GraphBolt was built with liburing and the kernel admits it."""
    detect = getattr(torch.ops.graphbolt, "detect_io_uring", None)
    return detect is not None and bool(detect())


@contextmanager
def _written(job: Job, bolt: ModuleType) -> Iterator[Path]:
    """The path of a file of the table, which is on the disk and not in the page cache.

    The file has no name after the block.
    """
    parent = job.graph.path.parent if job.graph.path else Path(tempfile.gettempdir())
    try:
        folder = tempfile.TemporaryDirectory(prefix=TEMPORARY, dir=parent)
    except OSError as error:
        raise _unwritable(parent, error) from None
    with folder as name:
        path = Path(name) / "features.npy"
        try:
            bolt.numpy_save_aligned(str(path), job.graph.features.numpy())
            with path.open("rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        except OSError as error:
            raise _unwritable(parent, error) from None
        yield path


def _unwritable(folder: Path, error: OSError) -> UnsupportedError:
    return UnsupportedError(
        f"features 'graphbolt': the table cannot be written below {folder}"
        f" ({error.strerror or error}); free some space or set GNNBENCH_DATA to another folder"
    )


def _opened(bolt: ModuleType, path: Path, method: str) -> Feature:
    """GraphBolt's feature over a file, from which a row was read."""
    try:
        if method == "mmap":
            mapped = np.load(path, mmap_mode="r+")  # as in GraphBolt: torch wants it writable
            feature = bolt.TorchBasedFeature(torch.from_numpy(mapped))
        else:
            feature = bolt.DiskBasedFeature(str(path))
        feature.read(torch.tensor([0]))
    except (OSError, RuntimeError, IndexError) as error:  # its reads end in an IndexError
        raise UnsupportedError(
            f"features 'graphbolt': GraphBolt cannot read a file below {path.parents[1]}"
            f" ({type(error).__name__}: {error}); set GNNBENCH_DATA to a folder on a local disk,"
            " or give features.file=mmap"
        ) from error
    return cast(Feature, feature)
