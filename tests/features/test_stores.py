"""Feature stores on the CPU: the table's rows bit by bit, and what is counted."""

from types import SimpleNamespace

import pytest
import torch

from gnnbench.core.cell import Cell
from gnnbench.core.counters import Counts
from gnnbench.core.errors import UnsupportedError
from gnnbench.core.job import Job
from gnnbench.features.foreign_spec import DglGather, PygFilter
from gnnbench.features.host import HostGather
from gnnbench.features.spec import Host


def store(spec, graph):
    return spec.build(Job(Cell("e", "s", graph.name, "gcn"), graph, Counts()))


def batch(*ids, dtype=torch.int32):
    return SimpleNamespace(input_nodes=torch.tensor(ids, dtype=dtype))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("spec", [Host(), DglGather()], ids=lambda s: s.name)
def test_rows_and_counts(spec, dtype, small_graph):
    made = store(spec, small_graph)
    row_bytes = 24 * 4
    for ids in ([3, 399, 0], [], [7, 7], list(range(50))):
        rows = made.load(batch(*ids, dtype=dtype))
        assert torch.equal(rows, small_graph.features[torch.tensor(ids, dtype=torch.int64)])
    assert made.job.counts.rows() == [
        ["features", "feature_bytes", "host", 55 * row_bytes], ["features", "calls", "host", 4],
    ]  # fmt: skip
    made.close()


def test_rows_are_gathered_into_given_memory(small_graph):
    """A store with its own ``load`` does not inherit a gather that does something else."""

    class Doubled(HostGather):
        def fetch(self, ids):
            return super().fetch(ids) * 2

    made, ids = store(Host(), small_graph), [3, 399, 0]
    right, out = small_graph.features[ids], torch.zeros(3, 24)
    assert made.load_into(batch(*ids), out) and torch.equal(out, right)
    assert made.job.counts.rows()[0] == ["features", "feature_bytes", "host", 3 * 24 * 4]
    assert not Doubled(made.job).load_into(batch(*ids), out) and torch.equal(out, right * 2)
    assert not store(DglGather(), small_graph).load_into(batch(*ids), out.zero_())
    assert torch.equal(out, right)


def test_the_hosts_rows_are_in_one_buffer_until_it_is_too_small(small_graph):
    made = store(Host(), small_graph)
    first = made.load(batch(*range(8)))
    place = first.data_ptr()
    assert made.load(batch(*range(10))).data_ptr() == place  # a quarter more than the first
    assert made.load(batch(1, 2)).data_ptr() == place
    assert made.load(batch(*range(11))).shape == (11, 24)
    assert torch.equal(first[:2], small_graph.features[[1, 2]])  # valid until the next call only


def test_pygs_filter_asks_the_batchs_loader(small_graph):
    made = store(PygFilter(), small_graph)
    loader = SimpleNamespace(filter_fn=lambda out: SimpleNamespace(x=small_graph.features[out]))
    drawn = batch(4, 2)
    drawn.loader, drawn.out = loader, [4, 2]
    assert torch.equal(made.load(drawn), small_graph.features[[4, 2]])
    assert made.job.counts.rows()[0][3] == 2 * 24 * 4
    with pytest.raises(UnsupportedError, match="for PyG's samplers only"):
        made.load(batch(4, 2))


def test_copied_rows_are_the_tables_and_count_nothing(small_graph):
    made = store(Host(), small_graph)
    for ids in ([399, 0, 5, 5, *range(100, 123)], [4], []):
        at = torch.tensor(ids, dtype=torch.int64)
        out = torch.full((len(ids), 24), float("nan"))
        made.copy_rows(at, out)
        assert torch.equal(out, small_graph.features[at])
    out = torch.full((400, 24), float("nan"))
    made.copy_all(out)
    assert torch.equal(out, small_graph.features)
    assert not made.job.counts.rows()
