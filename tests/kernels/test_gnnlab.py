"""The versioned table of GNNLab's sampler on the CPU."""

from functools import partial

import pytest
import torch
from ops_batches import check_same, options
from ops_graphs import INDICES, INDPTR, csc
from ops_threads import threads
from torch import Tensor

from gnnbench.core.errors import UsageError
from gnnbench.kernels.gnnlab import VersionedTable, gnnlab
from gnnbench.kernels.library import native_operators


def raw(words: Tensor, version: int, seeds: list[int], fanouts: list[int]) -> list[Tensor]:
    with native_operators() as ops:
        return ops.gnnlab(
            INDPTR, INDICES, torch.tensor(seeds), fanouts, "floyd", [], [], "cumulative", 1, 0,
            False, words, version,
        )  # fmt: skip


def entries(words: Tensor) -> dict[int, tuple[int, int]]:
    """Vertex -> (version, id), by the layout of gnnbench/gnnlab.h."""
    slots = 1 << ((words.numel() * 2 // 3).bit_length() - 1)
    ids = words[slots:].view(torch.int32)
    used = [(int(w), int(i)) for w, i in zip(words[:slots], ids, strict=False) if w != 0]
    return {w & (1 << 48) - 1: (w >> 48, i) for w, i in used}


def test_table_has_versions_and_ids() -> None:
    words = torch.zeros(24, dtype=torch.int64)
    raw(words, 7, [2, 0], [3])  # 2 <- 2 4 4, 0 <- 1 2 3
    assert entries(words) == {2: (7, 0), 0: (7, 1), 4: (7, 2), 1: (7, 3), 3: (7, 4)}
    raw(words, 8, [5], [1])  # 5 <- 0; entries left from version 7 count as empty
    by_node = entries(words)
    assert (by_node[5], by_node[0]) == ((8, 0), (8, 1))
    assert sum(version == 8 for version, _ in by_node.values()) == 2


def test_needed_table_size_is_returned() -> None:
    words = torch.zeros(0, dtype=torch.int64)
    (needed,) = raw(words, 1, [2, 0], [3, 6])
    assert needed.tolist() == [24]  # 6 nodes at most: 16 slots
    *blocks, needed = raw(torch.zeros(24, dtype=torch.int64), 1, [2, 0], [3, 6])
    assert needed.tolist() == [24]
    assert blocks[4].numel() == 13


def test_table_grows_within_a_batch() -> None:
    graph = csc([12] * 4000, torch.int32, 5)
    table = VersionedTable()
    sizes = []
    for batch, count in enumerate((1, 3, 30, 5)):
        how = options(graph, batch=batch)
        check_same(partial(gnnlab, table=table), graph, torch.arange(count), [10, 10], **how)
        sizes.append(table.words.numel())
    assert 0 < sizes[0] < sizes[1] < sizes[2] == sizes[3]
    assert table.version == 2  # reset when the table grew, then incremented


def test_versions_restart_after_the_last() -> None:
    graph = csc([12] * 500, torch.int32, 5)
    table = VersionedTable()
    sample_batch = partial(gnnlab, table=table)
    # Version 1 fills the table; if it is not cleared, version 1 finds its own old entries later.
    check_same(sample_batch, graph, torch.arange(400), [10, 10], **options(graph))
    table.version = 65533
    versions = []
    for batch in range(4):
        check_same(
            sample_batch, graph, torch.arange(499, 300, -1), [3], **options(graph, batch=batch)
        )
        versions.append(table.version)
    assert versions == [65534, 65535, 1, 2]


def test_stale_entries_are_never_used() -> None:
    # A table of minimal size, full of entries of other versions with the same vertices.
    for n in (1, 2, 4):
        with threads(n):
            words = torch.zeros(24, dtype=torch.int64)
            for version in range(1, 400):
                flat = raw(words, version, [version % 6, (version + 2) % 6], [2, 3])
                nodes = flat[5].tolist()
                assert sorted(set(nodes)) == sorted(nodes)
                by_node = entries(words)
                for local, node in enumerate(nodes):
                    assert by_node[node] == (version, local)


@pytest.mark.parametrize(
    ("words", "version", "message"),
    [
        (torch.zeros(24), 1, "table must be int64, it is float32"),
        (torch.zeros(2, 12, dtype=torch.int64), 1, "table must have 1 dimension"),
        (torch.zeros(24, dtype=torch.int64), 0, "version must be 1 to 65535, it is 0"),
        (torch.zeros(24, dtype=torch.int64), 65536, "version must be 1 to 65535, it is 65536"),
    ],
)
def test_bad_tables_are_refused(words: Tensor, version: int, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        raw(words, version, [0], [2])
