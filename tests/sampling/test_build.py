"""What ``build_sampler`` and ``sample`` refuse, by a sentence that names the argument."""

import numpy as np
import pytest
import torch
from sampling_cases import NAMES, build

import gnnbench
from gnnbench.core.errors import GnnbenchError, MissingError, UnsupportedError, UsageError

NAN = float("nan")


@pytest.mark.parametrize(
    ("how", "error", "words"),
    [
        (
            {"name": "fused_map"},
            UsageError,
            "unknown sampler 'fused_map'; did you mean 'fused-map'",
        ),
        ({"graph": "products"}, UsageError, "graph must be what gnnbench.load_dataset returns"),
        ({"graph": (1, 2)}, UsageError, "indptr must be a tensor"),
        ({"graph": (torch.tensor([0.0]), torch.tensor([0]))}, UsageError, "indptr must be int64"),
        (
            {"graph": (torch.tensor([0, 2]), torch.tensor([0.0]))},
            UsageError,
            "indices must be int32 or int64, it is float32",
        ),
        ({"graph": (torch.tensor([[0]]), torch.tensor([0]))}, UsageError, "indptr must have one"),
        (
            {"graph": (torch.tensor([0, 2]), torch.tensor([0]))},
            UsageError,
            "indptr must begin with",
        ),
        ({"fanouts": []}, UsageError, "fanouts is empty"),
        ({"fanouts": 5}, UsageError, "fanouts must be a list"),
        ({"fanouts": [5, 0]}, UsageError, r"fanouts\[1\] must be at least 1, or -1 .*, it is 0"),
        ({"fanouts": [-2]}, UsageError, r"fanouts\[0\] must be at least -1, it is -2"),
        (
            {"fanouts": [5, -1], "pick": "with_replacement"},
            UnsupportedError,
            "'with_replacement' cannot take all neighbours",
        ),
        (
            {"fanouts": [-1], "pick": "random_walk"},
            UnsupportedError,
            "'random_walk' cannot take all neighbours",
        ),
        ({"fanouts": [2.5]}, UsageError, r"fanouts\[0\] must be a whole number, not 2.5"),
        ({"fanouts": np.array(3)}, UsageError, "fanouts must be a list"),
        ({"fanouts": [3, 2**31]}, UsageError, r"fanouts\[1\] must be at most 2147483647"),
        ({"fanouts": [2**70]}, UsageError, r"fanouts\[0\] must be at most 2147483647"),
        ({"with_positions": "no"}, UsageError, "with_positions must be True or False, not 'no'"),
        ({"name": None}, UsageError, "sampler must be a name, not None"),
        ({"topology": 5}, UsageError, "topology must be a name, not 5"),
        ({"fanouts": [True]}, UsageError, r"fanouts\[0\] must be a whole number"),
        ({"device": "gpu"}, UsageError, "device must be cpu, cuda"),
        ({"device": "meta"}, UnsupportedError, "does not run on device 'meta'"),
        ({"seed": 1.5}, UsageError, "seed must be a whole number"),
        ({"pick": "flyod"}, UnsupportedError, "no pick 'flyod'; did you mean 'floyd'"),
        ({"frontier": "old"}, UnsupportedError, "no frontier 'old'; known are cumulative, new"),
        ({"topology": "gpus"}, UsageError, "unknown topology 'gpus'; did you mean 'gpu'"),
        ({"topology": "uva"}, UnsupportedError, "topology 'uva' needs device='cuda'"),
        ({"weights": torch.ones(3)}, UsageError, "weights is given, but pick 'floyd' takes none"),
        ({"walks": 3}, UsageError, "walks is given, but pick 'floyd' does not walk"),
        ({"restart": 0.1}, UsageError, "restart is given, but pick 'floyd' does not walk"),
        ({"fetch_size": 3}, UsageError, "has no option 'fetch_size'"),
        ({"row_worker": "block"}, UnsupportedError, "row_worker 'block' draws reservoirs on a GPU"),
        (
            {"edges": "coo"},
            UsageError,
            "edges 'coo' is DGL's whole method; give id_map=three-pass-probing and frontier=cum",
        ),
        (
            {"edges": "coo", "id_map": "three-pass-probing", "pick": "random_walk"},
            UnsupportedError,
            "edges 'coo' is of picks; give edges=csr",
        ),
        ({"name": "pgsampler-as-published"}, UnsupportedError, "does not run on device 'cpu'"),
        ({"id_map": "fused"}, UsageError, "cannot be fused; it is three-pass or three-pass-prob"),
        ({"name": "fused-map-by-hop", "id_map": "fused"}, UsageError, "has no option 'id_map'"),
        ({"name": "pgsampler", "fetch_sise": 3}, UsageError, "did you mean 'fetch_size'"),
        ({"name": "pgsampler", "fetch_size": 33}, UsageError, "cannot be 33; it is 1 to 32"),
        ({"name": "pgsampler", "fetch_size": 0}, UsageError, "cannot be 0; it is 1 to 32"),
        ({"name": "pgsampler", "hubs": "shared"}, UsageError, "cannot be shared; it is split"),
        ({"name": "pgsampler", "worker": "block"}, UsageError, "give hubs=whole with it"),
        ({"name": "pgsampler-as-printed", "hubs": "whole"}, UsageError, "has no option 'hubs'"),
        ({"name": "pgsampler", "frontier": "new"}, UnsupportedError, "no frontier 'new'"),
        ({"name": "pgsampler", "pick": "random_walk"}, UnsupportedError, "no pick 'random_walk'"),
        ({"name": "pgsampler-as-printed"}, UsageError, "loses tasks.*pass unsafe=True"),
        ({"name": "pgsampler-as-printed", "unsafe": 1}, UsageError, "unsafe cannot be 1"),
        ({"name": "dgl-fusion"}, UnsupportedError, "does not run on device 'cpu'"),
        ({"pick": "weighted_alias"}, UsageError, "weights is missing: pick 'weighted_alias'"),
        ({"pick": "weighted_alias", "weights": "graph"}, UsageError, "stores no edge weights"),
        ({"pick": "weighted_alias", "weights": "own"}, UsageError, "not 'own'"),
        ({"pick": "weighted_alias", "weights": [1.0]}, UsageError, "weights must be a tensor"),
        ({"pick": "random_walk", "walks": 0}, UsageError, "walks must be at least 1"),
        ({"pick": "random_walk", "walk_length": 5000}, UsageError, "walks times walk_length"),
        ({"pick": "random_walk", "restart": 1}, UsageError, "restart must be at least 0 and below"),
        ({"pick": "random_walk", "restart": NAN}, UsageError, "restart must be at least 0"),
    ],
)
def test_what_cannot_be_built(how, error, words, small_graph):
    arguments = {"name": "hop-by-hop", "graph": small_graph, "fanouts": [3, 2], **how}
    with pytest.raises(error, match=words) as caught:
        gnnbench.build_sampler(**arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("pick", ["weighted_alias", "weighted_prefix"])
@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (lambda w: w[1:], "weights must"),
        (lambda w: w.int(), "weights must be float32 or float64, they are int32"),
        (lambda w: w[None], "weights must have one dimension"),
        (lambda w: w.index_fill(0, torch.tensor([7]), NAN), "weights.* 7"),
        (lambda w: w.index_fill(0, torch.tensor([7]), float("inf")), "weights.* 7"),
        (lambda w: w.index_fill(0, torch.tensor([7]), -1e-9), "weights.* 7"),
    ],
)
def test_weights_that_are_none(pick, bad, words, small_graph):
    weights = bad(torch.ones(small_graph.num_edges))
    with pytest.raises(UsageError, match=words):
        gnnbench.build_sampler("hop-by-hop", small_graph, [3], pick=pick, weights=weights)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("seeds", "words"),
    [
        ([3, 400], "seeds holds the id 400 at position 1"),
        ([-1, 3], "seeds holds the id -1 at position 0"),
        ([3, 5, 3], "seeds holds an id twice"),
        ([2**33 + 3], f"seeds holds the id {2**33 + 3}"),
        ([1.5], "seeds must be whole numbers, they are float64"),
        ([True], "seeds must be whole numbers, they are bool"),
        ("nodes", "seeds must be whole numbers"),
        ([[1, 2]], "seeds must have one dimension"),
        ([[1], [2, 3]], "seeds must be"),
        (torch.tensor([1.0]), "seeds must be int32 or int64, they are float32"),
        (torch.tensor([1], dtype=torch.int16), "seeds must be int32 or int64, they are int16"),
        (torch.tensor(1), "seeds must have one dimension"),
    ],
)
def test_seeds_that_are_none(name, seeds, words, small_graph):
    sampler = build(name, small_graph, [3, 2])
    for _ in range(2):
        with pytest.raises(UsageError, match=words):
            sampler.sample(seeds)
    assert sampler.sample([3, 5]).seeds.tolist() == [3, 5]


class Own(gnnbench.Sampler):
    """A sampler with a law that checks nothing and draws nothing."""

    name = "own"
    law = "without-replacement"
    devices = ("cpu",)

    def draw(self, seeds, *, key, batch, with_positions):
        building = gnnbench.BlockBuilder(seeds, self.frontier)
        building.add(seeds.new_zeros(seeds.numel()), self.indices[:0])
        return building.batch()


@pytest.mark.parametrize(
    ("seeds", "words"),
    [
        ([0, 2**32 + 1], f"seeds holds the id {2**32 + 1} at position 1"),
        ([-1], "seeds holds the id -1 at position 0"),
        ([3, 400], "seeds holds the id 400 at position 1"),
        ([3, 5, 3], "seeds holds an id twice"),
        ([1] * 500, "seeds holds an id twice"),
    ],
)
def test_seeds_of_a_sampler_with_a_law(seeds, words, small_graph):
    sampler = gnnbench.build_sampler(Own, small_graph, [2])
    with pytest.raises(UsageError, match=words):
        sampler.sample(seeds)
    assert sampler.sample([3, 5]).seeds.tolist() == [3, 5]


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"epoch": -1}, "epoch must be at least 0"),
        ({"epoch": "0"}, "epoch must be a whole number"),
        ({"batch": -1}, "batch must be at least 0"),
        ({"batch": 2**70}, "batch must be at most 4294967295"),
        ({"with_positions": "no"}, "with_positions must be True or False, not 'no'"),
        ({"batch": 2**32}, "batch must be at most 4294967295"),
        ({"batch": 0.0}, "batch must be a whole number"),
    ],
)
def test_numbers_that_are_none(how, words, small_graph):
    with pytest.raises(UsageError, match=words):
        build("hop-by-hop", small_graph, [3, 2]).sample([0], **how)


@pytest.mark.parametrize("name", NAMES)
def test_a_broken_graph_is_an_error_and_no_crash(name):
    indptr, indices = torch.tensor([0, 2, 4]), torch.tensor([0, 1, 7, 0], dtype=torch.int32)
    sampler = build(name, (indptr, indices), [2, 2])
    with pytest.raises(GnnbenchError, match="indices"):
        sampler.sample([0, 1])


def test_a_gpu_that_is_not_there(small_graph):
    if torch.cuda.is_available():
        pytest.skip("there is one")
    for name in ("hop-by-hop", "dgl-fusion"):
        with pytest.raises(MissingError, match=f"sampler '{name}' cannot run: .*; "):
            build(name, small_graph, [3], device="cuda")


def test_a_sampler_that_only_a_gpu_runs_is_not_sampled_on_the_cpu(small_graph):
    with pytest.raises(UnsupportedError, match="does not sample on the CPU"):
        build("dgl-fusion", small_graph, [3], device="cuda", topology="cpu")


def test_what_numpy_gives_is_taken(small_graph):
    pair = (small_graph.indptr.numpy(), small_graph.indices.numpy())
    sampler = gnnbench.build_sampler("hop-by-hop", pair, np.array([3, 2]), seed=np.int64(4))
    assert sampler.fanouts == (3, 2)
    assert sampler.sample(np.arange(5), epoch=np.int32(1)).seeds.tolist() == [0, 1, 2, 3, 4]
