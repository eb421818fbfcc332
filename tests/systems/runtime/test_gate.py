"""The gate and the audit detect a wrong sampler, store or layer, and name it."""

import functools
from dataclasses import replace

import pytest
import torch
from compose import SYSTEMS, make, run, timed

from gnnbench.core.errors import UnsupportedError, UsageError
from gnnbench.models.kinds import MODELS
from gnnbench.sampling.hop_by_hop import HopByHop
from gnnbench.systems.runtime import checks

pytestmark = pytest.mark.usefixtures("one_thread")

LAYERS = ["csr", "dgl", "pyg"]


def replace_result(monkeypatch, stage, name, change):
    """Make a stage's method return ``change(right result, *arguments)``."""
    original = getattr(stage, name)
    monkeypatch.setattr(stage, name, lambda *args: change(original(*args), *args))


def few_seeds(monkeypatch, system):
    sampler = system.stages.sampler
    original = sampler.sample
    monkeypatch.setattr(sampler, "sample", lambda seeds, e, n: original(seeds[:10], e, n))


def test_dgl_fused_sampler_on_int32_is_caught(small_graph):
    """DGL does not reset its map between calls, so each call after the first loses edges."""
    settings = {"sampler.fused": True, "sampler.id_type": "int32"}
    report = make(small_graph, "dgl", settings, until="sample").check()
    assert not report.ok
    assert report.reason.startswith("call 2 of the sampler") and "edges by call" in report.reason
    assert report.digest == "" and report.details["batches"] == 1


@pytest.mark.real_data
def test_dgl_fused_sampler_on_int32_loses_half_of_ogbn_arxiv(real_data, monkeypatch):
    from gnnbench.datasets.prepare import load_dataset

    monkeypatch.setenv("GNNBENCH_REAL_DATA", str(real_data))
    graph = load_dataset("ogbn_arxiv+sym")

    def check(fused, id_type):
        settings = {"sampler.fused": fused, "sampler.id_type": id_type}
        cell = {"batch_size": 1024, "fanouts": (15, 10, 5)}
        return make(graph, "dgl", settings, until="sample", **cell).check()

    broken = check(True, "int32")
    first, second, third, *_ = broken.details["edges_by_call"]
    assert not broken.ok and broken.reason.startswith("call 2 of the sampler")
    assert second < 0.7 * first and third < second
    for report in (check(True, "int64"), check(False, "int32")):
        assert report.ok, report.reason


@pytest.mark.parametrize("name", SYSTEMS)
def test_wrong_rows_are_caught(name, small_graph, monkeypatch):
    system = make(small_graph, name, until="memory_io")
    replace_result(monkeypatch, system.stages.store, "load", lambda rows, batch: rows.roll(1, 0))
    assert "feature rows differ" in system.check().reason
    assert "feature rows differ" in system.recheck(3)


def test_rows_in_another_form_are_caught(small_graph, monkeypatch):
    system = make(small_graph, until="memory_io")
    replace_result(monkeypatch, system.stages.store, "load", lambda rows, batch: rows[:-1])
    assert "feature rows differ" in system.check().reason
    audit = run(system)
    assert not audit.ok and "feature rows for" in audit.reason


@pytest.mark.parametrize("zeros", [False, True], ids=["rows", "zeros"])
@pytest.mark.parametrize("layers", LAYERS)
def test_wrong_layers_are_caught(layers, zeros, small_graph):
    """On rows of zeros every layer gives zeros."""
    if zeros:
        small_graph = replace(small_graph, features=torch.zeros_like(small_graph.features))
    system = make(small_graph, settings={"aggregate": layers})
    assert system.check().ok
    with torch.no_grad():
        for values in system.trainer.model.parameters():
            values.mul_(1.01)
    assert "forward values" in system.check().reason


@pytest.mark.parametrize("model", sorted(MODELS))
@pytest.mark.parametrize("layers", LAYERS)
def test_wrong_gradients_are_caught(layers, model, small_graph, monkeypatch):
    system = make(small_graph, settings={"aggregate": layers}, model=model)
    assert system.check().details["backward_error"] < 1e-4
    replace_result(
        monkeypatch, checks, "layer_gradients", lambda g, *_: (1.01 * g[0].roll(1, 0), g[1])
    )
    assert "gradients of the input rows" in system.check().reason


HALF = (torch.float16, torch.bfloat16)


@pytest.mark.parametrize(
    "number,layers,dtype",
    [(n, layers, HALF[(n + nth) % 2]) for n in range(3) for nth, layers in enumerate(LAYERS)],
    ids=str,
)
def test_half_precision_in_one_layer_is_caught(number, layers, dtype, small_graph, monkeypatch):
    """The recipe has float32; rows or gradients pass through half precision."""
    system = make(small_graph, settings={"aggregate": layers})
    assert system.recipe.dtype == "float32"
    layer = system.trainer.model.layers[number]
    both = layer.register_forward_pre_hook(lambda _, args: (args[0], args[1].to(dtype).float()))
    assert "forward values" in system.check().reason
    both.remove()
    assert system.check().ok

    def back(_, args):
        if args[1].requires_grad:
            args[1].register_hook(lambda gradient: gradient.to(dtype).float())

    layer.register_forward_pre_hook(back)
    assert "gradients of the" in system.check().reason


@pytest.mark.parametrize("layers,model", [("csr", "gat"), ("dgl", "gcn"), ("pyg", "gat")])
def test_a_lost_gradient_of_one_weight_is_caught(layers, model, small_graph):
    """Gradients of rows are correct; only those of a weight are missing."""
    system = make(small_graph, settings={"aggregate": layers}, model=model)
    for parameter in system.trainer.model.parameters():
        parameter.requires_grad_(False)
        assert "gradients of the " in system.check().reason
        parameter.requires_grad_()
    assert system.check().details["weight_gradients"] == len(
        list(system.trainer.model.parameters())
    )


def test_a_model_cut_off_from_its_rows_is_caught(small_graph):
    system = make(small_graph)
    last = system.trainer.model.layers[-1]
    last.register_forward_pre_hook(lambda _, args: (args[0], args[1].detach()))
    assert "gradients of the input rows" in system.check().reason


@pytest.mark.parametrize(("name", "seed"), [("rmat@10", 0), ("rmat@13", 13)])
@pytest.mark.parametrize("system", ["baseline", "dgl", "pyg"])
def test_correct_layers_pass_on_thousands_of_equal_rows(system, name, seed, tmp_path, monkeypatch):
    """Rows of width 1, as in ``breakdown`` with these seeds."""
    from gnnbench.datasets.prepare import load_dataset

    monkeypatch.setenv("GNNBENCH_DATA", str(tmp_path))
    cell = {"batch_size": 256, "fanouts": (15, 10, 5), "hidden": 64, "seed": seed}
    report = make(load_dataset(name), system, **cell).check()
    assert report.ok, report.reason


@pytest.mark.parametrize("change", [{"pick": "reservoir"}, {"batch": 0}])
def test_sampler_that_differs_when_timed_is_caught(change, small_graph, monkeypatch):
    from gnnbench.sampling import hop_by_hop as module

    original = module.hop_by_hop

    def draw(*args, with_positions=False, **how):
        if "pick" in change and not with_positions:
            how = {**how, "pick": type(how["pick"]).of(change["pick"])}
        elif not with_positions:
            how = {**how, **change}
        return original(*args, with_positions=with_positions, **how)

    monkeypatch.setattr(module, "hop_by_hop", draw)
    assert "as timed draws other edges" in make(small_graph).check().reason


@pytest.mark.parametrize("until", ["sample", "compute"])
@pytest.mark.parametrize("name", SYSTEMS)
def test_a_timed_batch_of_other_seeds_is_caught(name, until, small_graph, monkeypatch):
    system = make(small_graph, name, until=until)
    assert system.check().ok
    few_seeds(monkeypatch, system)
    audit = run(system)
    assert not audit.ok and "other seeds than its own: 10" in audit.reason
    assert "seeds" in system.recheck(3) or "destinations" in system.recheck(3)


@pytest.mark.parametrize("name", SYSTEMS)
def test_stale_rows_in_a_timed_batch_are_caught(name, small_graph, monkeypatch):
    system = make(small_graph, name, until="memory_io")
    assert system.check().ok
    replace_result(
        monkeypatch, system.stages.store, "load", lambda rows, batch: torch.zeros_like(rows)
    )
    audit = run(system)
    assert not audit.ok and "last timed batch" in audit.reason


@pytest.mark.parametrize("until", ["sample", "compute"])
@pytest.mark.parametrize("frontier", ["cumulative", "new"])
def test_lost_edges_are_caught(frontier, until, small_graph, monkeypatch):
    system = make(small_graph, settings={"sampler.frontier": frontier}, until=until)

    def lose(batch, seeds, epoch, number):
        block = batch.blocks[0]
        if number == 2 and until == "sample":
            block.indices = block.indices[:-1]
        elif number == 2:  # layers would stumble: the count alone
            sizes = batch.sizes()
            nodes, num_dst, edges = sizes.layers[-1]
            less = replace(sizes, layers=[*sizes.layers[:-1], (nodes, num_dst, edges - 1)])
            batch.sizes = lambda: less
        return batch

    replace_result(monkeypatch, system.stages.sampler, "sample", lose)
    audit = run(system)
    assert not audit.ok and audit.reason.startswith("timed batch 3, hop 3: ")


def test_a_schedule_that_leaves_out_a_batch_is_caught(small_graph, monkeypatch):
    system = make(small_graph)
    original = system.recorder.record
    system.stages.keep = lambda batch, rows: batch.number and original(batch, rows)
    audit = run(system)
    assert not audit.ok and audit.reason == "3 batches were run where the epoch has 4"


def test_an_epoch_that_trains_nothing_is_caught(small_graph, monkeypatch):
    system = make(small_graph)
    monkeypatch.setattr(system.trainer._optimizer, "step", lambda: None)
    audit = run(system)
    assert not audit.ok and "nothing was trained" in audit.reason


def test_too_few_hops_are_caught(small_graph, monkeypatch):
    system = make(small_graph, until="sample")
    replace_result(
        monkeypatch, system.stages.sampler, "checked",
        lambda batch, *_: replace(batch, blocks=batch.blocks[1:]),
    )  # fmt: skip
    assert "2 hops were drawn where 3 are asked for" in system.check().reason


def test_sampler_with_smaller_fanouts_is_caught(small_graph):
    """Half the fanouts, both timed and checked."""
    system = make(small_graph, until="sample")
    sampler = system.stages.sampler.sampler
    assert isinstance(sampler, HopByHop)
    sampler.setting = replace(sampler.setting, fanouts=(2, 1, 1))
    report = system.check()
    assert (
        not report.ok and "call 1 of the sampler, hop 1" in report.reason and "min" in report.reason
    )
    timed(system, 0)
    assert not system.audit(0).ok


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("baseline", {"sampler.pick": "nonsense"}, "no pick 'nonsense'"),
        ("dgl", {"sampler.frontier": "new"}, "no frontier 'new'; it has: cumulative"),
        ("pyg", {"sampler.frontier": "cumulative"}, "no frontier 'cumulative'; it has: new"),
        ("baseline", {"features": "uva"}, "features 'uva' does not run on cpu"),
        ("baseline", {"features": "gpu"}, "features 'gpu' does not run on cpu"),
    ],
)
def test_an_unsupported_recipe_keeps_its_settings_and_the_reason(name, settings, message):
    from gnnbench.core.cell import Until
    from gnnbench.systems.runtime.find import find

    resolved = find(name).resolved(settings, "cpu", Until.COMPUTE)
    assert message in resolved.unsupported and resolved.composed
    for path, value in settings.items():
        stage, _, field = path.partition(".")
        assert resolved.recipe[stage][field or "name"] == value


def test_weighted_pick_needs_weights(small_graph):
    with pytest.raises(UnsupportedError, match="needs edge weights, and 'small' stores none"):
        make(small_graph, settings={"sampler.pick": "weighted_alias"})
    with pytest.raises(UsageError, match="pass unsafe=True"):
        make(small_graph, settings={"sampler": "pgsampler-as-printed"})


@pytest.mark.parametrize("name", SYSTEMS)
def test_all_neighbours_are_taken_by_every_system(name, small_graph):
    system = make(small_graph, name, fanouts=(-1, 3, -1))
    report = system.check()
    assert report.ok, report.reason
    audit = run(system, 1)
    assert audit.ok, audit.reason
    assert system.recheck(2) == ""


@pytest.mark.parametrize("name", ["baseline", "dgl"])
def test_missing_neighbour_is_caught(name, small_graph):
    """Samples with a fanout above most degrees, checked against all neighbours."""
    system = make(small_graph, name, fanouts=(20, 20), until="sample")
    object.__setattr__(system.cell, "fanouts", (-1, -1))
    assert "edges were drawn where" in system.check().reason
    assert "edges were drawn where" in run(system, 1).reason


def test_lost_visit_counts_of_random_walks_are_caught(small_graph, monkeypatch):
    """Without visit counts, layers that ignore them are correct."""

    def without(batch, *rest, look):
        bare = [replace(block, weights=None) for block in batch.blocks]
        return look(replace(batch, blocks=bare), *rest)

    for pick, fault in (("random_walk", "forward values"), ("floyd", "")):
        system = make(small_graph, settings={"sampler.pick": pick}, model="pinsage")
        assert system.check().ok
        look = functools.partial(without, look=system.trainer.forward)
        monkeypatch.setattr(system.trainer, "forward", look)
        assert fault in system.check().reason and system.check().ok == (not fault)
    assert make(small_graph, settings={"aggregate": "gnnadvisor"}, model="pinsage").check().ok


@pytest.mark.parametrize("name", LAYERS)
def test_layers_that_are_wrong_only_in_training_are_caught(name, small_graph, monkeypatch):
    """Values without gradients and gradients of rows are correct."""
    system = make(small_graph, settings={"aggregate": name})
    original = system.trainer.model.forward

    def wrong(blocks, x):
        trains = torch.is_grad_enabled() and not x.requires_grad
        return original(blocks, x) * (2.0 if trains else 1.0)

    assert system.check().ok
    monkeypatch.setattr(system.trainer.model, "forward", wrong)
    report = system.check()
    assert not report.ok and "gradients of the weights on the fixed block" in report.reason
