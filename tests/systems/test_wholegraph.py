"""WholeGraph without WholeGraph: what it is asked, and how its answers are read."""

import numpy as np
import pytest
import torch

from gnnbench import rng
from gnnbench.cell import NO_MODEL, Cell
from gnnbench.check import gate
from gnnbench.errors import UnsupportedError, UsageError
from gnnbench.reference import sampler as reference
from gnnbench.systems.wholegraph import WholeGraph

FANOUTS = (4, 3, 2)


def make(graph, **changes):
    values = {"model": NO_MODEL, "batch_size": 64, "fanouts": FANOUTS, **changes}
    return WholeGraph(Cell("test", "wholegraph", graph.name, **values), graph)


def answer(graph, seeds):
    """A batch in the form of ``multilayer_sample_without_replacement``, the input layer first."""
    batch = reference.sample(
        graph.indptr, graph.indices, seeds.int(), list(FANOUTS), pick="floyd",
        frontier="cumulative", key=rng.key(0, 0, "sample"), batch=0,
    )  # fmt: skip
    nodes = [*(b.src_nodes for b in batch.blocks), batch.seeds]
    return nodes, None, [b.indptr for b in batch.blocks], [b.indices for b in batch.blocks]


def test_answers_pass_the_structural_check(small_graph):
    system, seeds = make(small_graph), small_graph.train_idx[:50]
    drawn = answer(small_graph, seeds)
    hops = system.hops(drawn)
    gate.check_structure(small_graph, FANOUTS, "cumulative", seeds, hops)
    assert torch.equal(system.seeds(drawn).long(), seeds)
    assert system.input_nodes(drawn) is drawn[0][0]
    for (dst, edges), hop in zip(system.hop_sizes(drawn), hops, strict=True):
        assert np.array_equal(dst.numpy(), hop.dst) and edges == hop.edge_dst.size


def test_every_parallel_edge_has_a_position_of_its_own(small_graph):
    """With every in-neighbour drawn the positions are all of each row's."""
    system = make(small_graph, fanouts=(1000,))
    rows = torch.arange(small_graph.num_nodes)
    dst = torch.repeat_interleave(rows, small_graph.indptr.diff())
    drawn = ([small_graph.indices, rows], None, [small_graph.indptr], [torch.arange(dst.numel())])
    (hop,) = system.hops(drawn)
    assert np.array_equal(np.sort(hop.positions), np.arange(small_graph.num_edges))
    assert np.array_equal(small_graph.indices.numpy()[hop.positions], hop.edge_src)


@pytest.mark.parametrize("bend", ["twice", "elsewhere", "last"])
def test_wrong_answers_are_caught(bend, small_graph):
    system, seeds = make(small_graph), small_graph.train_idx[:50]
    nodes, _, offsets, columns = answer(small_graph, seeds)
    last = columns[-1].clone()
    row = int((offsets[-1].diff() == 4).nonzero()[0])
    begin = int(offsets[-1][row])
    if bend == "twice":
        last[begin : begin + 4] = last[begin]
    elif bend == "elsewhere":
        last[begin] = row  # the destination itself: no edge of it
    else:
        last[begin] = nodes[-2].numel() - 1
    with pytest.raises(gate.Fault):
        hops = system.hops((nodes, None, offsets, [*columns[:-1], last]))
        gate.check_structure(small_graph, FANOUTS, "cumulative", seeds, hops)


def test_it_samples_only(small_graph):
    with pytest.raises(UnsupportedError, match="the model 'none'"):
        make(small_graph, model="gcn")
    with pytest.raises(UsageError, match="'memory' of system 'wholegraph' cannot be 'paper'"):
        make(small_graph, options={"memory": "paper"})


def test_what_is_missing_says_how_to_get_it():
    missing = WholeGraph.missing("cuda")
    if missing is None:
        pytest.skip("WholeGraph is here")
    assert missing.reason and missing.fix
    assert WholeGraph.devices == ("cuda",)
