"""The library's samplers on a GPU, with the topology in device, locked host or CPU memory."""

from dataclasses import replace

import compose
import numpy as np
import pytest
import torch
from gpu_graphs import csc_of, skewed

import gnnbench
from gnnbench.core.errors import DataError, UnsupportedError, UsageError
from gnnbench.kernels.picks import WEIGHTED, WITHOUT_REPLACEMENT
from gnnbench.validation.same_work import malformed, same_work

pytestmark = pytest.mark.gpu

UNSOUND = "pgsampler-as-printed"
INFOS = [s for s in gnnbench.samplers() if "cuda" in s.devices and s.name != UNSOUND]
NAMES = [s.name for s in INFOS]
CASES = [(s.name, p, f) for s in INFOS for p in s.picks["cuda"] for f in s.frontiers]
# A GPU-only sampler does not support a topology on the CPU.
PLACES = [
    (s.name, place)
    for s in INFOS
    for place in ("gpu", "uva", "cpu")
    if place in ("gpu", "uva", *s.devices)
]
FANOUTS = [6, 4, 3]
PICKS = {s.name: "floyd" if "floyd" in s.picks["cuda"] else s.picks["cuda"][0] for s in INFOS}
REPLACING = [s.name for s in INFOS if "with_replacement" in s.picks["cuda"]]


@pytest.fixture(scope="module")
def graph():
    csc = skewed(20_000, torch.int32, 3)
    return csc.indptr, csc.indices


@pytest.fixture
def build(graph):
    made = []

    def make(name, pick=None, topology="gpu", device="cuda", of=None, **how):
        of = graph if of is None else of
        if pick in WEIGHTED:
            weights = torch.rand(of[1].numel(), generator=torch.Generator().manual_seed(3))
            weights[weights < 0.2] = 0
            how["weights"] = weights
        how.setdefault("fanouts", FANOUTS)
        sampler = gnnbench.build_sampler(
            name, of, device=device, seed=5, pick=pick,
            topology="cpu" if device == "cpu" else topology, **how,
        )  # fmt: skip
        made.append(sampler)
        return sampler

    yield make
    for sampler in made:
        sampler.close()


def seeds_of(n: int, salt: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(salt).permutation(20_000)[:n])


@pytest.mark.parametrize(
    ("name", "pick", "frontier", "topology"),
    [(*case, place) for case in CASES for name, place in PLACES if name == case[0]],
)
def test_work_equals_the_cpu(build, name, pick, frontier, topology):
    positions = pick != "random_walk"
    how = {"frontier": frontier, "with_positions": positions}
    ours = build(name, pick, topology, **how)
    right = build("hop-by-hop", pick, device="cpu", **how)
    # A small batch first: buffers sized by it must grow, and never shrink afterwards.
    for number, size in enumerate((3, 1500, 200, 1501, 0, 1)):
        seeds = seeds_of(size, number)
        batch = ours.sample(seeds, epoch=1, batch=number)
        assert batch.seeds.is_cuda and all(b.indptr.is_cuda for b in batch.blocks)
        fault = same_work(right.sample(seeds, epoch=1, batch=number), batch, frontier)
        assert fault is None


@pytest.mark.parametrize(("name", "topology"), PLACES)
def test_64_bit_ids_and_seeds_on_any_device(build, graph, name, topology):
    pick, wide = PICKS[name], (graph[0], graph[1].long())
    sampler = build(name, pick, topology, of=wide, with_positions=True)
    right = build("hop-by-hop", pick, device="cpu", with_positions=True)
    seeds = seeds_of(300)
    expected = right.sample(seeds)
    for form in (seeds, seeds.int(), seeds.cuda(), seeds.int().cuda(), seeds.tolist()):
        batch = sampler.sample(form)
        assert batch.input_nodes.dtype == torch.int64
        assert same_work(expected, batch) is None


BAD = [
    ([1, 20_000], "seeds holds an id outside the graph"),
    ([-1, 3], "seeds holds an id outside the graph"),
    ([2**32 + 1], "seeds holds an id outside the graph"),
    ([3, 5, 3], "seeds holds an id twice"),
    (torch.tensor([1.0]), "seeds must be int32 or int64"),
]


@pytest.mark.parametrize("topology", ["gpu", "uva"])
@pytest.mark.parametrize("name", NAMES)
def test_bad_seeds_are_reported_and_the_next_batch_is_correct(build, name, topology):
    sampler = build(name, PICKS[name], topology, with_positions=True)
    right = build("hop-by-hop", PICKS[name], device="cpu", with_positions=True)
    for seeds, words in BAD:
        with pytest.raises(UsageError, match=words):
            sampler.sample(seeds)
        assert same_work(right.sample(seeds_of(50)), sampler.sample(seeds_of(50))) is None


@pytest.mark.parametrize("name", NAMES)
def test_broken_graph_is_an_error(build, name):
    broken = (torch.tensor([0, 2, 4]), torch.tensor([0, 1, 7, 0], dtype=torch.int32))
    with pytest.raises(DataError, match="indices"):
        build(name, of=broken, fanouts=[2, 2]).sample([0, 1])


@pytest.mark.parametrize("name", NAMES)
def test_topology_in_locked_memory_uses_no_device_memory(build, graph, name):
    build("hop-by-hop", topology="gpu").sample(seeds_of(10))  # first calls have loaded everything
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    sampler = build(name, topology="uva")
    taken = torch.cuda.memory_allocated() - before
    assert taken <= 4 * 20_000 + 4096  # a dense map at most
    assert sampler.sample(seeds_of(10)).input_nodes.is_cuda
    sampler.close()


def test_locked_memory_is_released(build):
    first = build("hop-by-hop", topology="uva")
    copy = first._placed._locked[1].tensor
    assert copy.is_pinned()
    first.close()
    assert not copy.is_pinned()
    second = build("hop-by-hop", topology="uva")
    copy = second._placed._locked[1].tensor
    del second._placed._locked[:]  # nothing refers to it any longer
    assert not copy.is_pinned()


def test_default_pick_depends_on_the_device(build):
    assert build("hop-by-hop").pick == "reservoir"
    assert build("hop-by-hop", topology="cpu").pick == "floyd"
    assert build("gnnlab").pick == "fisher_yates"


def test_as_printed_pgsampler_counts_lost_tasks(build):
    printed = build(UNSOUND, unsafe=True, fanouts=[10, 10, 10])
    sound = build("pgsampler", fanouts=[10, 10, 10])
    seeds = seeds_of(2000)
    for batch in range(20):
        part, whole = (s.sample(seeds, batch=batch) for s in (printed, sound))
        assert malformed(part) is None
        assert part.sampled_edges <= whole.sampled_edges
        assert printed.tasks.enqueued == printed.tasks.processed + printed.tasks.lost
        if printed.tasks.lost == 0:
            assert same_work(whole, part) is None
    assert sound.lost_tasks == 0


@pytest.mark.parametrize("name", ["pgsampler", "dgl-fusion"])
def test_split_and_whole_hubs_give_the_same_work(build, name):
    lengths = torch.tensor([60_000, 5, 0, 9000] * 30)
    indptr = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
    hubs = indptr, torch.arange(int(indptr[-1]), dtype=torch.int32) * 7 % 120
    split, whole = (build(name, "reservoir", of=hubs, hubs=how) for how in ("split", "whole"))
    for batch in range(3):
        seeds = torch.randperm(120, generator=torch.Generator().manual_seed(batch))[:40]
        assert same_work(*(s.sample(seeds, batch=batch) for s in (split, whole))) is None
        assert split.tasks.parts > 0
        assert whole.tasks.parts == 0


def test_fusion_needs_a_gpu(build):
    with pytest.raises(UnsupportedError, match="does not sample on the CPU"):
        build("dgl-fusion", topology="cpu")


@pytest.mark.parametrize(("name", "topology"), PLACES)
@pytest.mark.parametrize("until", ["sample", "compute"])
def test_baseline_with_another_sampler(small_graph, name, topology, until):
    digests = []
    for device, sampler, where in (("cuda", name, topology), ("cpu", "hop-by-hop", "cpu")):
        settings = {"sampler": sampler, "sampler.topology": where}
        settings["sampler.pick"] = PICKS[name]
        system = compose.make(small_graph, settings=settings, until=until, device=device)
        report = system.check()
        assert report.ok, report.reason
        digests.append(report.digest)
        audit = compose.run(system, 1)
        assert audit.ok, audit.reason
        topology_bytes = [k for k in compose.counted(audit) if k[1] == "topology_bytes"]
        expected = {"gpu": [], "cpu": ["host"], "uva": ["zero_copy"]}[where]
        assert [place for _, _, place in topology_bytes] == (expected if device == "cuda" else [])
        assert system.recheck(2) == ""
        system.close()
    assert digests[0] == digests[1] != ""


def test_gate_counts_by_weight(small_graph):
    weights = torch.rand(small_graph.num_edges, generator=torch.Generator().manual_seed(5))
    weights[::3] = 0
    weighted = replace(small_graph, weights=weights)
    for pick in ("weighted_alias", "weighted_prefix", "with_replacement", "random_walk"):
        settings = {"sampler": "fused-map", "sampler.pick": pick}
        system = compose.make(
            weighted, settings=settings, until="sample", device="cuda", fanouts=(4, 3)
        )
        assert system.check().ok
        assert compose.run(system).ok
        system.close()


@pytest.mark.parametrize("fanouts", [[-1, -1], [3, -1], [-1, 2]])
@pytest.mark.parametrize(
    ("name", "pick", "frontier", "topology"),
    [
        (name, pick, frontier, place)
        for name, pick, frontier in CASES
        if pick in WITHOUT_REPLACEMENT
        for which, place in PLACES
        if which == name and place != "cpu"
    ],
)
def test_all_neighbours(build, graph, name, pick, frontier, topology, fanouts):
    """Small batches before large ones, so that buffers overflow; edge counts equal the degrees."""
    how = {"frontier": frontier, "with_positions": True, "fanouts": fanouts}
    ours = build(name, pick, topology, **how)
    right = build("hop-by-hop", pick, device="cpu", **how)
    for number, size in enumerate((2, 700, 1)):
        seeds = seeds_of(size, number)
        batch = ours.sample(seeds, epoch=1, batch=number)
        assert same_work(right.sample(seeds, epoch=1, batch=number), batch, frontier) is None
        if fanouts[0] == -1:
            assert batch.blocks[-1].num_edges == int(graph[0].diff()[seeds].sum())


@pytest.mark.parametrize("name", NAMES)
def test_all_neighbours_of_a_hub(build, name):
    """A row longer than any shared memory, among empty rows."""
    degrees = np.zeros(3000, dtype=np.int64)
    degrees[[5, 6]] = 300_000, 2
    hub = csc_of(degrees, torch.int32, 9)
    of = hub.indptr, hub.indices
    how = {"of": of, "fanouts": [-1, -1], "with_positions": True}
    ours, right = (
        build(name, "reservoir", **how),
        build("hop-by-hop", "reservoir", device="cpu", **how),
    )
    seeds = torch.tensor([6, 5, 0])
    assert same_work(right.sample(seeds), ours.sample(seeds)) is None


@pytest.mark.parametrize("name", REPLACING)
def test_picks_with_replacement_refuse_all_neighbours(build, name):
    with pytest.raises(UnsupportedError, match="cannot take all neighbours"):
        build(name, "with_replacement", fanouts=[-1])
