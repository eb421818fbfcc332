"""The real DGL and PyG on a GPU: gate, audited epochs, features bit for bit, bytes by path."""

from types import SimpleNamespace

import compose
import pytest
import stores
import torch
from locking import shared_table

from gnnbench.core.cell import Until, phases
from gnnbench.core.counters import LOCK_TIME, Counts
from gnnbench.core.errors import MissingError, UnsupportedError
from gnnbench.features import BoltGather, DglGather
from gnnbench.models.kinds import MODELS
from gnnbench.systems.runtime.find import find

pytestmark = pytest.mark.gpu

# The path under which feature rows are counted, by settings of DGL and PyG.
TABLES = {"host": "host_copy", "uva": "zero_copy", "gpu": "device"}
TOPOLOGIES = ("gpu", "uva")


@pytest.fixture
def make(small_graph):
    made = []

    def build(system, settings=None, device="cuda", **changes):
        recipe = find(system).definition.changed(settings or {})
        if missing := recipe.missing(device, Until.of(changes.get("until", "compute"))):
            pytest.skip(f"{system}: {missing.reason}; {missing.fix}")
        made.append(compose.make(small_graph, system, settings, device=device, **changes))
        return made[-1]

    yield build
    for system in made:
        system.close()


def trains(system, where, epochs=8):
    """Checks the gate, trains audited epochs that must learn, and checks the gate again."""
    report = system.check()
    assert report.ok, report.reason
    assert report.verified and report.law == "without-replacement"
    row_bytes = system.graph.feature_dim * 4
    losses = []
    for epoch in range(epochs):
        sweep = compose.timed(system, epoch)
        audit = system.audit(epoch)
        assert audit.ok, audit.reason
        assert (audit.batches, audit.seeds) == (4, 200)
        counted = compose.counted(audit)
        key = ("features", "feature_bytes", where)
        assert counted[key] == audit.unique_nodes * row_bytes
        assert [k for k in counted if k[:2] == key[:2]] == [key]
        assert tuple(sweep.busy) == phases("compute") and min(sweep.busy.values()) > 0
        losses.append(audit.loss)
    assert min(losses[epochs // 2 :]) < losses[0]  # independent random numbers: epochs differ
    assert system.recheck(1_000_003) == ""
    return report, losses


@pytest.mark.parametrize("model", sorted(MODELS))
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("topology", [*TOPOLOGIES, "cpu"])
def test_dgl_trains(make, topology, table, model):
    settings = {"sampler.topology": topology, "features.table": table}
    system = make("dgl", settings, model=model, learning_rate=0.02)
    trains(system, TABLES[table])
    batch = system.stages.sampler.sample(torch.arange(64, device="cuda"), 0, 0)
    assert batch.input_nodes.is_cuda
    assert all(b.device.type == "cuda" for b in batch.dgl_blocks)


@pytest.mark.parametrize("id_type", ["int64", "int32"])
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_dgl_sampler_is_equivalent_to_ours(make, topology, id_type):
    """Each destination has min(fanout, degree) edges; the first hop has exactly as many as ours."""
    settings = {"sampler.topology": topology, "sampler.id_type": id_type}
    theirs = make("dgl", settings, until="sample")
    ours = make("baseline", until="sample")
    a, b = theirs.check(), ours.check()
    assert a.ok, a.reason
    assert (a.frontier, a.law) == (b.frontier, b.law)
    assert a.edges_per_seed == pytest.approx(b.edges_per_seed, rel=0.05)
    seeds = torch.arange(200, device="cuda")
    actual = [
        [(dst.tolist(), edges) for dst, edges in s.stages.sampler.sample(seeds, 0, 0).sizes().hops]
        for s in (theirs, ours)
    ]
    assert actual[0][0] == actual[1][0]
    audit = compose.run(theirs, 3)
    assert audit.ok, audit.reason
    assert audit.loss is None


@pytest.mark.parametrize("table", TABLES)
def test_dgl_rows_equal_the_table(make, small_graph, table):
    """Ids in any order, repeated, empty, of both types; many unsynchronized loads."""
    store = make("dgl", {"features.table": table}).stages.store
    draws = torch.Generator().manual_seed(0)
    requests = [torch.randint(400, (n,), generator=draws) for n in (5, 300, 7, 4000, 1, 50_000)]
    rows = [store.load(SimpleNamespace(input_nodes=ids.cuda())) for ids in requests]
    for ids, actual in zip(requests, rows, strict=True):
        assert actual.is_cuda
        assert torch.equal(actual.cpu(), small_graph.features[ids])
    few = requests[1].int().cuda()
    actual = store.load(SimpleNamespace(input_nodes=few))
    assert torch.equal(actual.cpu(), small_graph.features[few.cpu().long()])


LOCKED = {"dgl": DglGather(table="uva"), "graphbolt": BoltGather()}
ID_TYPES = [torch.int64, torch.int32]


def locked_rows(name, table):
    """A store of DGL or PyG over a table that it must lock."""
    spec = LOCKED[name]
    if missing := spec.missing("cuda"):
        pytest.skip(f"{name}: {missing.reason}; {missing.fix}")
    graph = SimpleNamespace(features=table)
    return spec.build(SimpleNamespace(graph=graph, device=torch.device("cuda"), counts=Counts()))


@pytest.mark.parametrize("width", stores.WIDTHS)
@pytest.mark.parametrize("dtype", stores.DTYPES)
@pytest.mark.parametrize("name", LOCKED)
def test_rows_of_a_locked_table_equal_the_table(name, dtype, width):
    """Random bits, ids in any order, repeated, of both types; many unsynchronized loads."""
    table = stores.table(dtype, width)
    store = locked_rows(name, table)
    draws = torch.Generator().manual_seed(width)
    requests = [torch.randint(len(table), (n,), generator=draws) for n in (5, 97, 1, 4000, 50_000)]
    for id_type in ID_TYPES:
        gpu_ids = [ids.to("cuda", id_type) for ids in requests]
        actual = [store.load(SimpleNamespace(input_nodes=ids)) for ids in gpu_ids]
        for ids, rows in zip(requests, actual, strict=True):
            assert rows.is_cuda and stores.same(rows.cpu(), table[ids])
    store.close()


@pytest.mark.parametrize("name", LOCKED)
def test_shared_table_is_read_in_place(name):
    """As with ``uva``: there is no copy, and the last reader unlocks the table."""
    table = shared_table()
    first, second = (locked_rows(name, table) for _ in range(2))
    assert first.table.data_ptr() == second.table.data_ptr() == table.data_ptr()
    assert first.prepare(None)[LOCK_TIME] > 0
    first.close()
    assert table.is_pinned()
    ids = torch.arange(14, -1, -1, device="cuda")
    assert stores.same(second.load(SimpleNamespace(input_nodes=ids)).cpu(), table.flip(0))
    second.close()
    assert not table.is_pinned()


@pytest.mark.parametrize("system", ["baseline", "dgl"])
def test_graphbolt_gather_in_a_system(make, system):
    trains(make(system, {"features": "graphbolt"}, learning_rate=0.02), "zero_copy")


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_graphbolt_trains(make, topology):
    system = make("graphbolt", {"sampler.topology": topology}, learning_rate=0.02)
    report, _ = trains(system, "zero_copy")
    assert report.frontier == "cumulative"
    batch = system.stages.sampler.sample(torch.arange(64, device="cuda"), 0, 0)
    assert batch.input_nodes.is_cuda
    assert all(b.device.type == "cuda" for b in batch.dgl_blocks)


@pytest.fixture
def bolt_file(make):
    """Builds GraphBolt's system over a file; skips what this GraphBolt or kernel cannot read."""

    def build(method, **settings):
        paths = {f"features.{name}": value for name, value in settings.items()}
        try:
            return make("graphbolt", {"features.file": method, **paths}, learning_rate=0.02)
        except (MissingError, UnsupportedError) as error:
            pytest.skip(str(error))

    return build


@pytest.mark.parametrize("method", ["io_uring", "mmap"])
def test_graphbolt_trains_from_a_file(bolt_file, small_graph, method):
    """Gate, audits and ids of both types, in any order, repeated; all bytes come from the file."""
    system = bolt_file(method)
    trains(system, "disk")
    store = system.stages.store
    draws = torch.Generator().manual_seed(0)
    for ids in (torch.randint(400, (n,), generator=draws) for n in (5, 300, 1, 4000)):
        for id_type in ID_TYPES:
            rows = store.load(SimpleNamespace(input_nodes=ids.to("cuda", id_type)))
            assert rows.is_cuda and stores.same(rows.cpu(), small_graph.features[ids])


@pytest.mark.parametrize("method", ["io_uring", "mmap"])
def test_graphbolt_caches_rows_of_a_file(bolt_file, method):
    """Some rows come from its CPU cache; with those of the file they are all rows."""
    system = bolt_file(method, cache_gib=0.01)
    report = system.check()
    assert report.ok, report.reason
    compose.timed(system, 0)
    audit = system.audit(0)
    assert audit.ok, audit.reason
    counted = compose.counted(audit)
    sizes = [counted["features", "feature_bytes", where] for where in ("disk", "host_copy")]
    assert sum(sizes) == audit.unique_nodes * system.graph.feature_dim * 4 and sizes[1] > 0


@pytest.mark.parametrize("mix", [{"sampler": "fused-map"}, {"features": "uva"}, {"features": "gpu"},
                                 {"aggregate": "csr"}], ids=str)  # fmt: skip
def test_stages_of_dgl_combine_with_ours(make, mix):
    system = make("dgl", mix)
    report = system.check()
    assert report.ok, report.reason
    audit = compose.run(system)
    assert audit.ok, audit.reason


@pytest.mark.parametrize("workers", [0, 2])
def test_pyg_trains(make, workers):
    """It samples on the host, copies from pinned memory, and runs its layers on the GPU."""
    settings = {"sampler.extension": "pyg-lib", "sampler.workers": workers}
    system = make("pyg", settings, learning_rate=0.02)
    report, _ = trains(system, "host_copy")
    assert report.frontier == "new"
    batch = system.stages.sampler.sample(torch.arange(64, device="cuda"), 0, 0)
    assert not batch.out.node.is_cuda
    assert all(t.is_cuda for t in (*batch.tensors(), batch.seeds, batch.input_nodes))
    assert all(b.edge_index.is_cuda for b in batch.pyg_blocks)


def test_pyg_native_sampler_trains(make):
    trains(make("pyg-native-sampler", learning_rate=0.02), "host_copy")


@pytest.mark.parametrize("features", ["host", "uva", "gpu"])
def test_pyg_sampler_combines_with_our_stores(make, features):
    settings = {"sampler.extension": "pyg-lib", "features": features, "aggregate": "csr"}
    system = make("pyg", settings)
    report = system.check()
    assert report.ok, report.reason
    audit = compose.run(system)
    assert audit.ok, audit.reason


def test_pyg_equals_our_new_frontier(make):
    """The same distribution, and similar numbers of edges: the basis for comparing with it."""
    pyg = make("pyg", {"sampler.extension": "pyg-lib"}, until="sample").check()
    ours = make("baseline", {"sampler.frontier": "new"}, until="sample").check()
    assert pyg.ok, pyg.reason
    assert (pyg.frontier, pyg.law) == (ours.frontier, ours.law) == ("new", "without-replacement")
    assert pyg.edges_per_seed == pytest.approx(ours.edges_per_seed, rel=0.05)


def test_stale_rows_of_dgl_are_detected(make, monkeypatch):
    system = make("dgl")
    store = system.stages.store
    right = store.load
    monkeypatch.setattr(store, "load", lambda batch: right(batch).roll(1, 0))
    assert "feature rows differ" in system.check().reason
    assert "last timed batch: " in compose.run(system).reason


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_dgl_samples_all_neighbours(make, topology):
    report = make(
        "dgl", {"sampler.topology": topology}, until="sample", fanouts=(-1, 2, -1)
    ).check()
    assert report.ok, report.reason


@pytest.mark.parametrize("system", ["pyg", "wholegraph", "cugraph-pyg"])
def test_other_samplers_sample_all_neighbours(make, system):
    report = make(system, until="sample", fanouts=(-1, -1)).check()
    assert report.ok, report.reason


@pytest.mark.parametrize("table", ["uva", "gpu"])
def test_wholegraph_rows_pass_the_gate(make, table):
    system = make("wholegraph", {"features.table": table}, until="memory_io")
    report = system.check()
    assert report.ok, report.reason
    audit = compose.run(system, 0)
    assert audit.ok, audit.reason


@pytest.mark.parametrize(
    "settings", [{}, {"sampler.batches_per_call": 2}, {"schedule": "prefetch"}]
)
def test_cugraph_pyg_trains(make, settings):
    system = make("cugraph-pyg", settings)
    report = system.check()
    assert report.ok, report.reason
    for epoch in range(2):
        audit = compose.run(system, epoch)
        assert audit.ok, audit.reason
