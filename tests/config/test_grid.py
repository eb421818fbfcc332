"""Expansion of a definition to cells: names, paths, shorthands and duplicates."""

import textwrap

import pytest

from gnnbench.config import experiment as ex
from gnnbench.config.grid import expand
from gnnbench.core import registry
from gnnbench.core.cell import flat
from gnnbench.core.errors import UnsupportedError, UsageError
from gnnbench.models.kinds import MODELS
from gnnbench.models.weights import make_weights
from gnnbench.pipelines.find import stage as find_stage
from gnnbench.systems.runtime.find import find

HEAD = "schema_version = 2\n[axes]\nsystem = {}\ndataset = ['d']\n"
TRAIN = "model = ['gcn']\n"
SAMPLE = "until = ['sample']\n"


def resolve(system, settings, device, until):
    return find(system).resolved(settings, device, until)


def known(system, settings):
    return find(system).options(settings)


@pytest.fixture
def grid(tmp_path):
    def make(systems, text, over=None):
        path = tmp_path / "mine.toml"
        path.write_text(HEAD.format(systems) + textwrap.dedent(text))
        return expand(ex.resolve(ex.load(str(path)), "", over), resolve, known=known)

    return make


def paths(grid, *wanted):
    """System and values by path of every cell."""
    return [(c.system, *(flat(c.recipe).get(p) for p in wanted)) for c in grid.cells]


def test_cell_has_the_resolved_recipe(grid):
    (cell,) = grid(["baseline"], TRAIN + "hidden = [8]\nthreads = [2]\n").cells
    assert (cell.experiment, cell.system, cell.model, cell.hidden) == ("mine", "baseline", "gcn", 8)
    assert cell.threads == 2 and cell.until == "compute" and cell.composed
    assert cell.recipe == find("baseline").definition.resolved("cpu").plain()


def test_equal_recipes_are_one_cell_with_several_names(grid):
    text = TRAIN + "'baseline.sampler' = ['hop-by-hop', 'fastsample']\n"
    expanded = grid(["baseline", "fastsample", "dgl"], text)
    assert paths(expanded, "sampler") == [
        ("baseline", "hop-by-hop"), ("fastsample", "fastsample"), ("dgl", "dgl"),
    ]  # fmt: skip
    one, fast, dgl = (c.id for c in expanded.cells)
    assert expanded.names == {one: ["baseline"], fast: ["fastsample", "baseline"], dgl: ["dgl"]}
    assert expanded.unsupported == {}


def test_axis_of_another_system_adds_no_cells(grid):
    text = SAMPLE + "'dgl.sampler.fused' = [true, false]\nbatch_size = [8, 16]\n"
    expanded = grid(["baseline", "dgl"], text)
    assert len(expanded.cells) == len(set(expanded.names)) == 6
    assert len([c for c in expanded.cells if c.system == "baseline"]) == 2


def test_explicit_default_is_the_same_cell(grid):
    expanded = grid(["dgl"], SAMPLE + "'dgl.sampler.id_type' = ['int64']\n")
    assert [c.id for c in expanded.cells] == [c.id for c in grid(["dgl"], SAMPLE).cells]


def test_axes_of_a_stage_and_its_field(grid):
    text = SAMPLE + "'baseline.sampler' = ['pgsampler']\n'baseline.sampler.fetch_size' = [3, 5]\n"
    assert paths(grid(["baseline"], text), "sampler", "sampler.fetch_size") == [
        ("baseline", "pgsampler", 3), ("baseline", "pgsampler", 5),
    ]  # fmt: skip


def test_field_applies_to_stages_that_have_it(grid):
    text = "until = ['memory_io']\n'baseline.features' = ['host', 'match', 'window']\n"
    table = "'baseline.features.table' = ['default', 'cache']\n"
    more = "'baseline.features.table.ratio' = [0.1, 0.2]\n'baseline.features.window' = [4]\n"
    expanded = grid(["baseline"], text + table + more)
    wanted = ("features", "features.table", "features.table.ratio", "features.window")
    assert paths(expanded, *wanted) == [
        ("baseline", "host", None, None, None),
        ("baseline", "match", "host", None, None), ("baseline", "match", "cache", 0.1, None),
        ("baseline", "match", "cache", 0.2, None),
        ("baseline", "window", "host", None, 4), ("baseline", "window", "cache", 0.1, 4),
        ("baseline", "window", "cache", 0.2, 4),
    ]  # fmt: skip
    text += "[systems.baseline]\n'features.window' = 16\n"
    assert [p[1:] for p in paths(grid(["baseline"], text), "features", "features.window")] == [
        ("host", None), ("match", None), ("window", 16),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("field", "hint"),
    [("features.windw", "features.window"), ("features.table.ratio", "features.table")],
)
def test_field_that_no_stage_has_is_refused(grid, field, hint):
    text = "until = ['memory_io']\n'baseline.features' = ['host', 'match', 'window']\n"
    words = rf"'baseline' has no setting '{field}', whichever stage .*; did you mean '{hint}'"
    with pytest.raises(UsageError, match=words):
        grid(["baseline"], text + f"'baseline.{field}' = [4]\n")


@pytest.mark.parametrize(
    "text",
    [
        "[systems.baseline]\nsampler = 'pgsampler'\n'sampler.fetch_size' = 3\n",
        "[systems.baseline]\n'sampler.fetch_size' = 3\nsampler = 'pgsampler'\n",
        "[systems.baseline]\nsampler.name = 'pgsampler'\nsampler.fetch_size = 3\n",
        "[systems.baseline.sampler]\nname = 'pgsampler'\nfetch_size = 3\n",
        "[axes.baseline.sampler]\nname = ['pgsampler']\nfetch_size = [3]\n",
    ],
)
def test_tables_and_paths_are_equivalent(grid, text):
    expanded = grid(["baseline"], SAMPLE + text)
    assert paths(expanded, "sampler", "sampler.fetch_size") == [("baseline", "pgsampler", 3)]


def test_pick_and_frontier_apply_to_all_systems(grid):
    text = SAMPLE + "pick = ['default', 'reservoir']\nfrontier = ['new']\n"
    expanded = grid(["baseline", "dgl"], text)
    assert paths(expanded, "sampler.pick", "sampler.frontier") == [
        ("baseline", "floyd", "new"), ("dgl", "default", "new"),
        ("baseline", "reservoir", "new"), ("dgl", "reservoir", "new"),
    ]  # fmt: skip
    dgl = [c.id for c in expanded.cells if c.system == "dgl"]
    assert set(expanded.unsupported) == set(dgl)
    assert "no frontier 'new'" in expanded.unsupported[dgl[0]]
    assert "no pick 'reservoir'" in expanded.unsupported[dgl[1]]


def test_constraints_exclude_combinations_by_path(grid):
    text = SAMPLE + (
        "'baseline.sampler' = ['hop-by-hop', 'gnnlab']\npick = ['floyd', 'reservoir']\n"
        "[[constraints]]\nexclude = { 'baseline.sampler' = 'gnnlab', pick = 'floyd' }\n"
    )
    assert paths(grid(["baseline"], text), "sampler", "sampler.pick") == [
        ("baseline", "hop-by-hop", "floyd"), ("baseline", "hop-by-hop", "reservoir"),
        ("baseline", "gnnlab", "reservoir"),
    ]  # fmt: skip


def test_empty_fanouts_gather_rows_of_seeds(grid):
    text = "fanouts = [[], [5]]\nuntil = ['memory_io']\n"
    gathers, samples = grid(["baseline"], text).cells
    assert (gathers.fanouts, gathers.gathers, samples.gathers) == ((), True, False)
    assert gathers.id != samples.id
    for until in ("sample", "compute"):
        with pytest.raises(UsageError, match=f"nothing to do until {until}.* give until=memory_io"):
            grid(["baseline"], TRAIN + text.replace("memory_io", until))


@pytest.mark.parametrize("until", ["sample", "memory_io"])
def test_model_is_ignored_without_compute(grid, until):
    text = f"until = ['{until}']\nmodel = ['gcn', 'graphsage']\nhidden = [8, 16]\n"
    (cell,) = grid(["baseline"], text + "learning_rate = [0.1, 0.2]\n").cells
    assert (cell.model, cell.hidden, cell.learning_rate) == ("", 0, 0.0)
    assert "aggregate" not in cell.recipe
    assert len(grid(["baseline"], text.replace(until, "compute")).cells) == 4


def test_hidden_must_be_a_multiple_of_the_heads(grid):
    text = "model = ['{}']\nhidden = [20]\n"
    with pytest.raises(UsageError, match="hidden=20 columns; give a multiple of 8"):
        grid(["baseline"], text.format("gat"))
    assert len(grid(["baseline"], text.format("gin")).cells) == 1
    assert len(grid(["baseline"], text.format("gat") + "until = ['sample']\n").cells) == 1


def test_equal_cells_of_two_experiments_have_one_id(grid):
    one = grid(["baseline"], TRAIN)
    other = grid(["baseline"], TRAIN, {"name": "other", "title": "another"})
    assert other.cells[0].experiment == "other"
    assert one.cells[0].id == other.cells[0].id


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (TRAIN + "'options.fused' = [true]\n", "'options.fused' is to name whose it is"),
        (TRAIN + "'baseline.sampler.fused' = [true]\n", "'hop-by-hop' has no setting 'fused'"),
        (TRAIN + "'baseline.sampler' = ['floyd']\n", "unknown sampler 'floyd'"),
        (TRAIN + "'baseline.smapler' = ['dgl']\n", "did you mean 'sampler'"),
        (TRAIN + "[systems.baseline]\nfeatures = 'disk'\n", "unknown features 'disk'"),
        (TRAIN + "until = ['none']\n", "until"),
        ("", "no value for the axis 'model'"),
    ],
)
def test_invalid_axes_are_refused(grid, text, words):
    with pytest.raises(UsageError, match=words):
        grid(["baseline"], text)


def test_integer_learning_rate_is_the_same_cell(grid):
    cells = [grid(["baseline"], TRAIN + f"learning_rate = [{r}]\n").cells for r in ("1", "1.0")]
    assert cells[0] == cells[1] and len(cells[0]) == 1


def test_other_environment_has_the_same_combinations(tmp_path):
    path = tmp_path / "mine.toml"
    text = "'baseline.sampler' = ['hop-by-hop', 'fastsample']\n"
    path.write_text(HEAD.format(["baseline", "fastsample"]) + TRAIN + text)
    definition = ex.resolve(ex.load(str(path)), "", None)
    own, other_env = (expand(definition, resolve, env) for env in ("", "old"))
    assert len(own.asked) == len(other_env.asked) == 4 > len(own.cells) == 2
    assert [c.env for c in other_env.cells] == ["old", "old"]
    known = {c.id: c.recipe for c in [*own.cells, *other_env.cells]}
    for one, other in zip(own.asked, other_env.asked, strict=True):
        assert one != other and known[one] == known[other]


def test_all_neighbours_need_a_pick_without_replacement(grid):
    text = SAMPLE + "fanouts = [[10, -1]]\n'baseline.sampler.pick' = ['floyd', 'random_walk']\n"
    expanded = grid("['baseline', 'dgl']", text)
    walks, *able = sorted(
        expanded.cells, key=lambda c: flat(c.recipe)["sampler.pick"] != "random_walk"
    )
    assert {c.fanouts for c in expanded.cells} == {(10, -1)}
    assert {flat(c.recipe)["sampler.pick"] for c in able} == {"floyd", "dgl"}
    assert list(expanded.unsupported) == [walks.id]
    assert expanded.unsupported[walks.id].startswith(
        "pick 'random_walk' cannot take all neighbours (fanout -1), each of them once; choose "
    )


def test_model_that_an_aggregation_lacks_is_unsupported(grid):
    text = (
        "model = ['gcn', 'gat']\nhidden = [8]\n"
        "'baseline.aggregate' = ['csr', 'scatter', 'spmm', 'gnnadvisor']\n"
    )
    expanded = grid(["baseline"], text)
    reasons = {
        (c.model, c.recipe["aggregate"]["name"]): expanded.unsupported.get(c.id, "")
        for c in expanded.cells
    }
    assert {k for k, reason in reasons.items() if reason} == {
        ("gat", "spmm"),
        ("gat", "gnnadvisor"),
    }
    assert reasons["gat", "spmm"] == (
        "model 'gat' weighs edges by attention, which aggregate 'spmm' does not; use"
        " aggregate=csr or scatter"
    )


def test_visit_counts_that_an_aggregation_lacks_are_unsupported(grid):
    text = (
        "model = ['pinsage', 'gcn']\n'baseline.aggregate' = ['spmm', 'gnnadvisor']\n"
        "'baseline.sampler.pick' = ['floyd', 'random_walk']\n"
    )
    expanded = grid(["baseline"], text)
    (cell,) = (c for c in expanded.cells if c.id in expanded.unsupported)
    assert (cell.model, cell.recipe["aggregate"]["name"]) == ("pinsage", "gnnadvisor")
    assert "visits of random walks" in expanded.unsupported[cell.id]


def test_dropout_is_part_of_the_work_where_there_is_any(grid):
    plain = grid(["baseline"], "model = ['gcn']\n")
    dropping = grid(["baseline"], "model = ['gcn']\ndropout = [0, 0.5]\n")
    assert [c.dropout for c in dropping.cells] == [0.0, 0.5]
    assert dropping.cells[0].id == plain.cells[0].id != dropping.cells[1].id
    (untrained,) = grid(["baseline"], "until = ['sample']\ndropout = [0.5]\n").cells
    assert untrained.dropout == 0


def test_precision_is_part_of_the_work_unless_it_is_float32(grid):
    plain = grid(["baseline"], "model = ['gcn']\n")
    narrow = grid(["baseline"], "model = ['gcn']\nprecision = ['float32', 'bfloat16']\n")
    assert [c.precision for c in narrow.cells] == ["float32", "bfloat16"]
    assert narrow.cells[0].id == plain.cells[0].id != narrow.cells[1].id
    (untrained,) = grid(["baseline"], "until = ['sample']\nprecision = ['bfloat16']\n").cells
    assert untrained.precision == "float32"


def test_tf32_on_a_cpu_is_refused(grid):
    with pytest.raises(UsageError, match="precision=tf32 needs a GPU, and device is cpu"):
        grid(["baseline"], "model = ['gcn']\nprecision = ['float32', 'tf32']\n")
    (cell,) = grid(["baseline"], "model = ['gcn']\ndevice = ['cuda']\nprecision = ['tf32']\n").cells
    assert (cell.device, cell.precision) == ("cuda", "tf32")
    (untrained,) = grid(["baseline"], "until = ['sample']\nprecision = ['tf32']\n").cells
    assert untrained.precision == "float32"


def test_unknown_precision_is_refused(grid):
    with pytest.raises(UsageError, match="it is float32, tf32 or bfloat16"):
        grid(["baseline"], "model = ['gcn']\nprecision = ['float16']\n")


def test_degrees_of_padded_blocks_are_unsupported(grid):
    """Where rows are scaled by degrees: edge weights are made before padding."""
    text = (
        "model = ['gcn-symmetric', 'gcn']\n'baseline.aggregate' = ['csr', 'gnnadvisor']\n"
        "'baseline.schedule.step' = ['eager', 'padded']\n"
    )
    expanded = grid(["baseline"], text)
    (cell,) = (c for c in expanded.cells if c.id in expanded.unsupported)
    assert (cell.model, cell.recipe["aggregate"]["name"]) == ("gcn-symmetric", "gnnadvisor")
    assert "padding changes" in expanded.unsupported[cell.id]


@pytest.mark.parametrize("stage", registry.known(registry.AGGREGATE))
def test_lacks_of_aggregations_agree_with_their_layers(stage):
    spec = find_stage(registry.AGGREGATE, stage)()
    if spec.missing("cpu") or "cpu" not in spec.devices:
        pytest.skip(f"{stage} is not here")
    weights = make_weights([4, 8], MODELS["gat"], 0)[0]
    if "attention" in spec.lacks:
        with pytest.raises(UnsupportedError):
            spec.build().layer(MODELS["gat"], weights)
    else:
        assert spec.build().layer(MODELS["gat"], weights) is not None
