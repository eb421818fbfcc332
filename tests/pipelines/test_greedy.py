"""Greedy Reorder as an order of batches."""

from types import SimpleNamespace

import pytest
import torch

from gnnbench.core.cell import Cell
from gnnbench.core.counters import Counts
from gnnbench.core.errors import UsageError
from gnnbench.core.job import Job
from gnnbench.pipelines.greedy import Greedy
from gnnbench.pipelines.order import AsDrawn


def batch(*ids):
    return SimpleNamespace(input_nodes=torch.tensor(ids, dtype=torch.int32))


def order(small_graph, **fields):
    return Greedy(**fields).build(Job(Cell("e", "s", "small", "gcn"), small_graph, Counts()))


# FastGL Fig. 6: the third batch matches the first better than the second does.
WINDOW = [batch(0, 1, 2, 3, 4, 5), batch(0, 3, 4, 10, 12), batch(0, 1, 2, 3, 4, 7)]
LAST = batch(10, 12, 13)


def test_the_papers_window(small_graph):
    """It starts with the first sampled batch, whatever preceded it."""
    made = order(small_graph)
    assert made.arrange(WINDOW, None) == [0, 2, 1]
    assert made.arrange(WINDOW, LAST) == [0, 2, 1]
    assert made.arrange(WINDOW[:1], LAST) == [0]


def test_carried_start_follows_the_last_batch_of_the_previous_window(small_graph):
    made = order(small_graph, start="carried")
    assert made.arrange(WINDOW, None) == [0, 2, 1]
    assert made.arrange(WINDOW, LAST) == [1, 0, 2]


def test_moved_batches_and_the_time_to_reorder_are_counted(small_graph):
    counts = Counts()
    made = Greedy().build(Job(Cell("e", "s", "small", "gcn"), small_graph, counts))
    made.arrange(WINDOW, None)
    moved, (*time, seconds) = counts.rows()
    assert moved == ["order", "reordered", "", 2]
    assert time == ["order", "reorder_time_s", ""] and seconds > 0
    counts.clear()
    assert counts.rows() == []


def test_batches_are_as_drawn(small_graph):
    job = Job(Cell("e", "s", "small", "gcn", batch_size=64), small_graph, Counts())
    greedy, drawn = Greedy(window=4).build(job), AsDrawn().build(job)
    assert (greedy.window, drawn.window) == (4, 1)
    assert all(map(torch.equal, greedy.batches(3), drawn.batches(3)))
    assert drawn.arrange(WINDOW, LAST) == [0, 1, 2]


def test_values_outside_the_range_are_refused():
    with pytest.raises(UsageError, match=r"order 'greedy'.window cannot be 1; it is 2 to 1024"):
        Greedy(window=1)
    with pytest.raises(UsageError, match=r"start cannot be last; it is first or carried"):
        Greedy(start="last")
