"""GNNLab's sampler on the CPU, with one versioned table for all batches."""

from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import ops_batches
import pytest
import torch
from hypothesis import given, settings
from ops_batches import BAD, check_bad, check_same, options, threads
from ops_graphs import FRONTIERS, INDICES, INDPTR, csc
from torch import Tensor

from gnnbench.core.errors import UsageError
from gnnbench.core.minibatch import MiniBatch
from gnnbench.kernels.gnnlab import VersionedTable, gnnlab
from gnnbench.kernels.library import load_native, native_errors
from gnnbench.kernels.picks import PICKS, WITHOUT_REPLACEMENT

_shared = VersionedTable()


def sample(*args: Any, **how: Any) -> MiniBatch:
    """Samples any graph with the same table."""
    return gnnlab(*args, **how, table=_shared)


@pytest.mark.parametrize("pick", WITHOUT_REPLACEMENT)
def test_all_neighbours_keep_stored_order(pick: str) -> None:
    ops_batches.check_by_hand(sample, pick)


@pytest.mark.parametrize("pick", PICKS)
@settings(max_examples=20)
@given(data=st.data())
def test_same_work_on_random_graphs(pick: str, data: st.DataObject) -> None:
    ops_batches.check_random_graph(sample, pick, data)


@pytest.mark.parametrize("frontier", FRONTIERS)
@pytest.mark.parametrize("pick", ["fisher_yates", "weighted_prefix", "random_walk"])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_same_work_for_any_number_of_threads(pick: str, frontier: str, dtype: torch.dtype) -> None:
    ops_batches.check_threads(sample, pick, frontier, dtype)


def test_one_thread_numbers_nodes_by_first_occurrence() -> None:
    ops_batches.check_one_thread(sample)


def test_nodes_inserted_by_several_threads_get_one_id() -> None:
    ops_batches.check_contest(sample)


@pytest.mark.parametrize("frontier", FRONTIERS)
def test_empty_seeds_and_graphs(frontier: str) -> None:
    ops_batches.check_empty(sample, frontier)


@pytest.mark.parametrize(("changed", "error", "message"), BAD, ids=[m for _, _, m in BAD])
def test_bad_arguments(changed: dict[str, Any], error: type[Exception], message: str) -> None:
    check_bad(sample, changed, error, message)


def raw(words: Tensor, version: int, seeds: list[int], fanouts: list[int]) -> list[Tensor]:
    load_native()
    with native_errors():
        answer: list[Tensor] = torch.ops.gnnbench.gnnlab(
            INDPTR, INDICES, torch.tensor(seeds), fanouts, "floyd", [], [], "cumulative", 1, 0,
            False, words, version,
        )  # fmt: skip
    return answer


def entries(words: Tensor) -> dict[int, tuple[int, int]]:
    """Vertex -> (version, id), by the layout of gnnbench/gnnlab.h."""
    slots = 1 << ((words.numel() * 2 // 3).bit_length() - 1)
    ids = words[slots:].view(torch.int32)
    used = [(int(w), int(i)) for w, i in zip(words[:slots], ids, strict=False) if w != 0]
    return {w & (1 << 48) - 1: (w >> 48, i) for w, i in used}


def test_table_holds_the_version_and_the_ids() -> None:
    words = torch.zeros(24, dtype=torch.int64)
    raw(words, 7, [2, 0], [3])  # 2 <- 2 4 4, 0 <- 1 2 3
    assert entries(words) == {2: (7, 0), 0: (7, 1), 4: (7, 2), 1: (7, 3), 3: (7, 4)}
    raw(words, 8, [5], [1])  # 5 <- 0; entries left from version 7 count as empty
    by_node = entries(words)
    assert (by_node[5], by_node[0]) == ((8, 0), (8, 1))
    assert sum(version == 8 for version, _ in by_node.values()) == 2


def test_reports_the_needed_table_size() -> None:
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
        check_same(
            lambda *a, **k: gnnlab(*a, **k, table=table),
            graph, torch.arange(count), [10, 10], **how,
        )  # fmt: skip
        sizes.append(table.words.numel())
    assert 0 < sizes[0] < sizes[1] < sizes[2] == sizes[3]
    assert table.version == 2  # reset when the table grew, then incremented


def test_versions_restart_after_the_last() -> None:
    graph = csc([12] * 500, torch.int32, 5)
    table = VersionedTable()

    def sample_batch(*args: Any, **how: Any) -> MiniBatch:
        return gnnlab(*args, **how, table=table)

    # Version 1 fills the table; if it is not cleared, version 1 finds its own old entries later.
    check_same(sample_batch, graph, torch.arange(400), [10, 10], **options(graph))
    table.version = 65533
    seen = []
    for batch in range(4):
        check_same(
            sample_batch, graph, torch.arange(499, 300, -1), [3], **options(graph, batch=batch)
        )
        seen.append(table.version)
    assert seen == [65534, 65535, 1, 2]


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


@pytest.mark.real_data
def test_same_work_on_a_real_graph(real_data: Path) -> None:
    graph, train = ops_batches.real_graph(real_data)
    for batch in range(3):
        seeds = train[batch * 1024 : (batch + 1) * 1024]
        how = options(graph, "fisher_yates", batch=batch)
        assert check_same(sample, graph, seeds, [15, 10, 5], **how).sampled_edges > 20_000
