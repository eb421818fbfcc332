"""PGSampler's task queue on CPU threads: the same work as the hop-by-hop sampler, no lost task."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import ops_batches
import pytest
import torch
from cpu_samplers import pgsampler_batch
from hypothesis import given, settings
from ops_batches import BAD, KEY, check_bad, check_same, options, pick_of, real_graph
from ops_graphs import INDICES, INDPTR, csc
from ops_threads import threads

from gnnbench.core.errors import UnsupportedError, UsageError
from gnnbench.kernels import rng, sampler
from gnnbench.kernels.pgsampler import WORKERS, TaskStats, pgsampler
from gnnbench.kernels.picks import PICKS
from gnnbench.validation.same_work import same_work

GRAPH = (INDPTR, INDICES)
OWN_PICKS = [pick for pick in PICKS if pick != "random_walk"]


@pytest.mark.parametrize("pick", ["reservoir", "floyd", "fisher_yates"])
@pytest.mark.parametrize("fetch_size", [1, 5, 32])
def test_batch_by_hand(pick: str, fetch_size: int) -> None:
    ops_batches.check_cumulative_by_hand(partial(pgsampler_batch, fetch_size=fetch_size), pick)


def test_tasks_are_counted() -> None:
    # 5 <- 0; 0 <- 1 2 3; then 1 <- 0, 2 <- 2 4 4, 3 isolated: tasks (5, 0); (5, 1), (0, 1);
    # (5, 2), (0, 2), (1, 2), (2, 2), (3, 2).
    _, stats = pgsampler(*GRAPH, torch.tensor([5]), [9, 9, 9], key=KEY, batch=0)
    edges = 1 + (1 + 3) + (1 + 3 + 1 + 3)
    assert stats == TaskStats((8, edges), 8, 8, 0, 0, 0, 1)


@pytest.mark.parametrize("pick", OWN_PICKS)
@settings(max_examples=20)
@given(data=st.data())
def test_same_work_on_random_graphs(pick: str, data: st.DataObject) -> None:
    sample_batch = partial(pgsampler_batch, fetch_size=data.draw(st.integers(1, 32)))
    ops_batches.check_random_graph(sample_batch, pick, data, ("cumulative",))


@pytest.mark.parametrize("pick", OWN_PICKS)
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_same_work_for_any_number_of_threads(pick: str, dtype: torch.dtype) -> None:
    ops_batches.check_threads(pgsampler_batch, pick, "cumulative", dtype)


def test_nodes_inserted_by_several_threads_get_one_id() -> None:
    ops_batches.check_contention(pgsampler_batch)


@pytest.mark.parametrize("pick", OWN_PICKS)
def test_rows_longer_than_one_window_of_draws(pick: str) -> None:
    ops_batches.check_long_rows(pgsampler_batch, pick)


def test_empty_and_isolated_seeds_have_no_edges() -> None:
    ops_batches.check_empty(pgsampler_batch, "cumulative")


@pytest.mark.parametrize("hops", [1, 2, 3, 7, 8, 15, 16, 31])
def test_any_number_of_hops_is_the_same_work(hops: int) -> None:
    # The flags of a vertex take 2, 4, 8, 16 or 32 bits of a word.
    graph = csc([1, 2, 0, 3, 1, 1, 2] * 9, torch.int32, 3)
    check_same(
        pgsampler_batch, graph, torch.arange(0, 60, 7), [1 + hops % 2] * hops, **options(graph)
    )


@pytest.mark.parametrize("degree", [1, 2])
def test_no_task_is_lost_under_contention(degree: int) -> None:
    # Few tasks for many workers: most of the time all but one wait.
    graph = csc([degree] * 500, torch.int32, degree)
    order = rng.permutation(500, KEY)
    with threads(4):
        for batch in range(1500):
            first = batch % 490
            seeds = order[first : first + 1 + batch % 3]
            how = options(graph, "reservoir", batch=batch, with_positions=True)
            fanouts = [1, 1, 1, 1] if batch % 2 else [2, 3, 1]
            expected = sampler.hop_by_hop(*graph, seeds, fanouts, **how)
            got = pgsampler_batch(*graph, seeds, fanouts, **how)
            assert got.sampled_edges == expected.sampled_edges
            for ours, theirs in zip(got.blocks, expected.blocks, strict=True):
                assert ours.positions is not None
                assert theirs.positions is not None
                assert torch.equal(ours.positions.sort()[0], theirs.positions.sort()[0])


def test_as_printed_loses_tasks_read_too_early() -> None:
    """With one worker, the loss is deterministic.

    Slot 0 is (5, 0), which enqueues (0, 1) and (5, 1) in slots 1 and 2. The worker takes slots 1 to
    5 and finds the last three empty; then (0, 1) enqueues (1, 2), (2, 2), (3, 2) there, which
    no worker reads again, and (0, 2), (5, 2) in slots 6 and 7, the first of the next five.
    """
    seeds = torch.tensor([5])
    how: dict[str, Any] = {"key": KEY, "batch": 0, "with_positions": True}
    with threads(1):
        batch, stats = pgsampler(*GRAPH, seeds, [9, 9, 9], variant="as_printed", unsafe=True, **how)
    assert stats == TaskStats((8, 9), 8, 5, 3, 6, 0, 1)
    third, second, first = batch.blocks
    assert first.indptr.tolist() == [0, 1]
    assert second.indptr.tolist() == [0, 1, 4]
    assert second.src_nodes.tolist() == [5, 0, 1, 2, 3]
    assert third.src_nodes.tolist() == [5, 0, 1, 2, 3]
    assert third.indptr.tolist() == [0, 1, 4, 4, 4, 4]
    assert third.indices.tolist() == [1, 2, 3, 4]
    with threads(1):
        expected = pgsampler_batch(*GRAPH, seeds, [9, 9, 9], **how)
        alone, stats = pgsampler(
            *GRAPH, seeds, [9, 9, 9], variant="as_printed", fetch_size=1, unsafe=True, **how
        )
    assert (stats.lost, stats.stale) == (0, 0)
    assert same_work(expected, alone) is None


@pytest.mark.parametrize("n", [1, 2, 4])
def test_as_printed_counts_lost_tasks(n: int) -> None:
    graph = csc([1, 3, 0, 40, 2] * 100, torch.int64, 4)
    with threads(n):
        for number in range(50):
            batch, stats = pgsampler(
                *graph,
                torch.arange(number, number + 20),
                [4, 3, 2],
                key=KEY,
                batch=number,
                variant="as_printed",
                unsafe=True,
            )
            assert stats.lost == stats.enqueued - stats.processed >= 0
            assert same_work(batch, batch) is None, "blocks of what was sampled are well-formed"
            drawn = [(b.indptr[1:] > b.indptr[:-1]).sum() for b in batch.blocks]
            assert sum(drawn) <= stats.processed


def test_as_printed_must_be_selected_explicitly() -> None:
    with pytest.raises(UsageError, match=r"variant 'as_printed' loses tasks.* pass unsafe=True"):
        pgsampler(*GRAPH, torch.tensor([5]), [9], key=KEY, batch=0, variant="as_printed")


def test_unsupported_arguments_are_refused() -> None:
    walks = pick_of("random_walk", GRAPH)
    with pytest.raises(UnsupportedError, match="pick 'random_walk' is not one of pgsampler's"):
        pgsampler(*GRAPH, torch.tensor([5]), [9], key=KEY, batch=0, pick=walks)
    for variant in ("fusion", "non_persistent"):
        with pytest.raises(UnsupportedError, match=rf"variant '{variant}' leaves .* to a GPU"):
            pgsampler(*GRAPH, torch.tensor([5]), [9], key=KEY, batch=0, variant=variant)


def test_worker_option_is_ignored_on_a_cpu() -> None:
    how = {"key": KEY, "batch": 0}
    one, other = (
        pgsampler(*GRAPH, torch.tensor([2, 0]), [3, 6], hubs="whole", worker=worker, **how)[0]
        for worker in WORKERS
    )
    assert same_work(one, other) is None


def test_hubs_option_is_ignored_on_a_cpu() -> None:
    indptr = torch.tensor([0, 20_000, 20_003])
    indices = (torch.arange(20_003, dtype=torch.int32) * 7) % 2
    with threads(2):
        for seeds in (torch.tensor([0]), torch.tensor([1, 0])):
            split, whole = (
                pgsampler(indptr, indices, seeds, [5, 3], key=KEY, batch=1, hubs=hubs)
                for hubs in ("split", "whole")
            )
            assert split[1].parts == whole[1].parts == 0
            assert same_work(split[0], whole[0]) is None


BAD_OPTIONS: list[tuple[dict[str, Any], str]] = [
    (
        {"variant": "queue"},
        "variant must be one of persistent, fusion, non_persistent, as_printed, not 'queue'",
    ),
    ({"fetch_size": 0}, "fetch_size must be between 1 and 32, it is 0"),
    ({"fetch_size": 33}, "fetch_size must be between 1 and 32, it is 33"),
    ({"hubs": "shared"}, "hubs must be 'split' or 'whole', not 'shared'"),
    ({"worker": "thread"}, "worker must be 'warp' or 'block', not 'thread'"),
    ({"worker": "block"}, "worker 'block' does not split rows; use it with hubs='whole'"),
    (
        {"worker": "block", "hubs": "whole", "variant": "as_printed", "unsafe": True},
        "worker 'block' requires variant 'persistent' or 'non_persistent', not 'as_printed'",
    ),
    ({"capacity": [5, 5, 5]}, "capacity must be empty or .tasks, edges., it has 3 items"),
    ({"capacity": [5, -1]}, "capacity must hold numbers between 0 and 2.31 - 1, it holds -1"),
    ({"fanouts": [1] * 32}, "fanouts has 32 hops, pgsampler takes at most 31"),
]


@pytest.mark.parametrize("changed, message", BAD_OPTIONS)
def test_bad_options_are_refused(changed: dict[str, Any], message: str) -> None:
    how = {"fanouts": [3, 2], "key": KEY, "batch": 0, **changed}
    with pytest.raises(UsageError, match=f"^{message}$"):
        pgsampler(*GRAPH, torch.tensor([5]), how.pop("fanouts"), **how)


@pytest.mark.parametrize("n", [1, 4])
@pytest.mark.parametrize(
    "changed, error, message", [case for case in BAD if "frontier" not in case[0]]
)
def test_bad_arguments_are_refused(
    changed: dict[str, Any], error: type[Exception], message: str, n: int
) -> None:
    check_bad(pgsampler_batch, changed, error, message, n)


@pytest.mark.parametrize("pick", ["reservoir", "floyd"])
def test_same_work_on_a_real_graph(real_data: Path, pick: str) -> None:
    graph, order = real_graph(real_data)
    for n in (1, 2):
        with threads(n):
            check_same(pgsampler_batch, graph, order[:512], [15, 10, 5], **options(graph, pick))
