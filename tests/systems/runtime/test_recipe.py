"""Recipes: changes by path, resolution for a device, and the plain form."""

from dataclasses import dataclass, fields, replace
from typing import ClassVar

import pytest

from gnnbench.core import registry
from gnnbench.core.cell import Until, flat
from gnnbench.core.errors import UnsupportedError, UsageError
from gnnbench.core.missing import Missing
from gnnbench.core.option import Interval
from gnnbench.core.stage import option
from gnnbench.features.spec import Host, Match, StoreSpec, Uva
from gnnbench.models.aggregation import Csr
from gnnbench.sampling.dgl import DglSampler
from gnnbench.sampling.native import native
from gnnbench.systems.baseline import BASELINE
from gnnbench.systems.dgl import DGL
from gnnbench.systems.pgsampler import PGSAMPLER
from gnnbench.systems.runtime import find as finding
from gnnbench.systems.runtime.find import find
from gnnbench.systems.runtime.recipe import NEEDED, Recipe, from_plain
from gnnbench.systems.wholegraph import WHOLEGRAPH

SAMPLE, MEMORY_IO, COMPUTE = Until
ALL = {name: registry.load("system", name) for name in registry.OURS["system"]}


def stages(recipe):
    return {f.name: getattr(recipe, f.name) for f in fields(recipe) if f.name in (*NEEDED, "dtype")}


def test_stages_are_in_the_order_of_a_batch():
    assert list(BASELINE.stages()) == list(NEEDED)
    assert list(BASELINE.stages(MEMORY_IO)) == ["sampler", "features", "order", "schedule"]
    assert list(BASELINE.stages(SAMPLE)) == ["sampler", "order", "schedule"]


def test_changes_of_stages_and_fields_in_any_order():
    assert BASELINE.changed({}) == BASELINE
    assert BASELINE.changed({"sampler.pick": "reservoir"}).sampler.pick == "reservoir"
    assert BASELINE.changed({"sampler": "dgl"}) == replace(BASELINE, sampler=DglSampler())
    given = {"sampler.fetch_size": 3, "features": "uva", "sampler": "pgsampler"}
    changed = BASELINE.changed(given)
    assert changed == BASELINE.changed(dict(reversed(given.items())))
    assert changed.sampler == native("pgsampler", fetch_size=3)
    assert changed.features.name == "uva" and changed.aggregate == BASELINE.aggregate
    assert BASELINE.sampler == native("hop-by-hop")  # unchanged


def test_new_stage_has_its_defaults():
    assert PGSAMPLER.sampler.pick == "reservoir"
    assert PGSAMPLER.changed({"sampler": "pgsampler"}).sampler.pick == "default"
    assert PGSAMPLER.changed({"sampler.fetch_size": 9}).sampler.pick == "reservoir"


def test_change_of_the_store_replaces_the_cpu_store():
    recipe = ALL["zero-copy"]
    assert recipe.devices == ("cpu", "cuda")
    assert recipe.resolved("cpu").features == Host()
    assert recipe.resolved("cuda").features == Uva(access="aligned")
    assert (recipe.shared("cpu"), recipe.shared("cuda")) == ((), ("features",))
    other = recipe.changed({"schedule.buffers": 3})
    assert other.resolved("cpu").features == Host() and other.schedule.buffers == 3
    for settings in ({"features.access": "naive"}, {"features": "uva"}):
        changed = recipe.changed(settings)
        assert changed.devices == ("cuda",) and changed.resolved("cuda").features.name == "uva"
        with pytest.raises(UnsupportedError, match="features 'uva' does not run on cpu"):
            changed.resolved("cpu")
    assert recipe.changed({"features": "match"}).resolved("cpu").features.name == "match"
    assert BASELINE.on("cpu") == BASELINE


def test_change_of_a_stage_replaces_its_cpu_stage():
    recipe = ALL["best"]
    on_gpu, on_cpu = recipe.resolved("cuda"), recipe.resolved("cpu")
    names = ("sampler", "features", "aggregate", "schedule")
    assert [getattr(on_gpu, n).name for n in names] == ["fused-map", "window", "tuned", "prefetch"]
    assert [getattr(on_cpu, n).name for n in names] == ["fastsample", "host", "csr", "prefetch"]
    assert on_cpu.on_cpu == () and on_cpu.plain() == on_cpu.resolved("cpu").plain()
    changed = recipe.changed({"sampler.pick": "reservoir"})
    on_cpu_names = [getattr(changed.resolved("cpu"), n).name for n in names]
    assert on_cpu_names == ["fused-map", "host", "csr", "prefetch"]
    # a changed field of the same stage keeps the other CPU stages
    deeper = recipe.changed({"schedule.depth": 3})
    assert (deeper.resolved("cpu").schedule.depth, deeper.resolved("cpu").schedule.step) == (
        3,
        "eager",
    )
    assert (deeper.resolved("cuda").schedule.depth, deeper.resolved("cuda").schedule.step) == (
        3,
        "graph",
    )
    assert recipe.changed({"schedule": "serial"}).resolved("cpu").schedule.name == "serial"
    changed = ALL["fastgl"].changed({"aggregate.x": 4})
    assert ALL["fastgl"].resolved("cpu").aggregate == Csr()
    with pytest.raises(UnsupportedError, match="aggregate 'memory-aware' does not run on cpu"):
        changed.resolved("cpu")
    assert changed.resolved("cpu", MEMORY_IO).features.name == "match"


@pytest.mark.parametrize("given", [Host(), (Host,), ("host",)])
def test_on_cpu_must_be_a_tuple_of_stages(given):
    with pytest.raises(UsageError, match=r"recipe 'mine': on_cpu must be (a tuple|of Spec)"):
        replace(BASELINE, name="mine", on_cpu=given)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"smapler": "dgl"}, "system 'baseline' has no setting 'smapler'; did you mean 'sampler'"),
        ({"sampler.pik": "floyd"}, "has no setting 'pik'; did you mean 'pick'"),
        ({"sampler.fused": True}, "sampler 'hop-by-hop' has no setting 'fused'"),
        ({"sampler": "fused_map"}, "unknown sampler 'fused_map'; did you mean 'fused-map'"),
        ({"sampler": "baseline"}, "is called 'hop-by-hop' now"),
        ({"sampler": 3}, "sampler must be a name, not 3"),
        ({"features": "disk"}, "unknown features 'disk'; known are"),
        ({"features.pick": "floyd"}, "features 'host' has no setting 'pick'"),
        ({"dtype": "float16"}, "dtype cannot be float16; it is float32"),
        ({"dtype.x": 1}, "has no setting 'dtype.x'"),
        ({"fused": True}, "has no setting 'fused'"),
        ({"sampler": "dgl", "sampler.fused": "maybe"}, "cannot be maybe; it is true or false"),
        ({"sampler": "dgl", "sampler.fused": 1}, "cannot be 1; it is true or false"),
        ({"sampler": "dgl", "sampler.id_type": "int16"}, "it is default, int64, int32 or fit"),
    ],
)
def test_invalid_settings_are_refused(settings, words):
    with pytest.raises(UsageError, match=words):
        BASELINE.changed(settings)


def test_options_are_the_paths_of_the_current_stages():
    options = BASELINE.options()
    assert {"dtype", *NEEDED} <= set(options)
    assert options["sampler"].default == "hop-by-hop" and "dgl" in options["sampler"].choices
    assert "sampler.pick" in options and "sampler.fused" not in options
    assert "sampler.fused" in DGL.options()
    assert "sampler.fused" in BASELINE.changed({"sampler": "dgl"}).options()
    assert WHOLEGRAPH.options()["aggregate"].default is None
    for path, one in options.items():
        assert one.name == path or path.endswith(f".{one.name}")
        assert one.help


@pytest.mark.parametrize("name", ALL)
def test_every_option_accepts_its_legal_values(name):
    recipe = ALL[name]
    for path, one in recipe.options().items():
        legal = one.choices or ()
        if isinstance(legal, Interval):
            legal = legal.low, legal.high
        elif isinstance(legal, range):
            legal = legal[0], legal[1], legal[-1]
        for value in legal:
            settings = flat(recipe.changed({path: value}).plain())
            # A default without effect is left out.
            assert settings[path] == value if path in settings else value == one.default


def test_plain_form_leaves_out_unreached_stages():
    complete = BASELINE.resolved("cpu").plain()
    assert complete == {
        "sampler": {
            "name": "hop-by-hop", "pick": "floyd", "frontier": "cumulative", "topology": "cpu",
        },
        "features": {"name": "host"},
        "order": {"name": "as-drawn"},
        "aggregate": {"name": "csr"},
        "schedule": {"name": "serial"},
        "dtype": "float32",
    }  # fmt: skip
    assert list(BASELINE.plain(SAMPLE)) == ["sampler", "order", "schedule"]
    assert set(complete) - set(BASELINE.plain(MEMORY_IO)) == {"aggregate"}


@pytest.mark.parametrize("until", list(Until))
@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("name", ALL)
def test_plain_form_restores_the_recipe(name, device, until):
    recipe = ALL[name]
    ends = SAMPLE if recipe.features is None else MEMORY_IO if recipe.aggregate is None else COMPUTE
    if device not in recipe.devices or until > ends:
        with pytest.raises(UnsupportedError):
            recipe.resolved(device, until)
        return
    resolved = recipe.resolved(device, until)
    assert resolved.resolved(device, until) == resolved
    assert "default" not in flat(resolved.plain(until)).values()
    restored = from_plain(name, resolved.plain(until))
    left_out = {k: None for k in ("features", "aggregate") if until < NEEDED[k]}
    assert stages(restored) == {**stages(resolved), **left_out}
    assert restored.plain(until) == resolved.plain(until)


def test_devices_are_those_of_all_stages():
    both = ("cpu", "cuda")
    assert {name: recipe.devices for name, recipe in ALL.items()} == {
        **dict.fromkeys(ALL, both), "wholegraph": ("cuda",), "cugraph-pyg": ("cuda",),
    }  # fmt: skip
    assert BASELINE.changed({"features": "uva"}).devices == ("cuda",)
    assert BASELINE.changed({"sampler": "dgl-fusion"}).devices == ("cuda",)
    assert BASELINE.changed({"sampler": "dgl-fusion", "features": "dgl"}).devices == ("cuda",)


def test_stage_that_does_not_run_on_a_device():
    with pytest.raises(UnsupportedError, match="features 'gpu' does not run on cpu"):
        BASELINE.changed({"features": "gpu"}).resolved("cpu")
    # a stage that is not reached is not checked
    assert BASELINE.changed({"features": "gpu"}).resolved("cpu", SAMPLE)


def test_placement_of_dgls_graph_and_features():
    on_gpu, on_cpu = DGL.resolved("cuda"), DGL.resolved("cpu")
    assert (on_gpu.sampler.topology, on_gpu.features.table) == ("gpu", "uva")
    assert (on_cpu.sampler.topology, on_cpu.features.table) == ("cpu", "host")
    for path, value in (("sampler.topology", "uva"), ("features.table", "gpu")):
        changed = DGL.changed({path: value})
        assert flat(changed.resolved("cuda").plain())[path] == value
        with pytest.raises(UnsupportedError, match=value):
            changed.resolved("cpu")
    by_host = DGL.changed({"sampler.topology": "cpu"})  # in a cell on a GPU
    assert by_host.resolved("cuda").sampler.topology == "cpu"


def test_system_that_only_samples():
    samples = replace(WHOLEGRAPH, name="mine", features=None)
    assert samples.resolved("cuda", SAMPLE).sampler.pick == "wholegraph"
    for until in (MEMORY_IO, COMPUTE):
        with pytest.raises(UnsupportedError, match="'mine' only samples; give -o until=sample"):
            samples.resolved("cuda", until)
    with pytest.raises(UsageError, match="has no features; name one: features="):
        samples.changed({"features.x": 1})
    loads = samples.changed({"features": "uva"})
    assert loads.resolved("cuda", MEMORY_IO).features.name == "uva"


def test_system_without_layers():
    assert WHOLEGRAPH.resolved("cuda", MEMORY_IO).features.table == "uva"
    ends = "'wholegraph' only samples and loads; give -o until=memory_io"
    with pytest.raises(UnsupportedError, match=ends):
        WHOLEGRAPH.resolved("cuda", COMPUTE)


def test_missing_considers_reached_stages_only(monkeypatch):
    monkeypatch.setattr(Host, "missing", classmethod(lambda cls, device: Missing(device, "fix")))
    recipe = Recipe("x", "", native("hop-by-hop"))
    assert recipe.missing("cpu", SAMPLE) is None
    assert recipe.missing("cpu", MEMORY_IO) == recipe.missing("cpu") == Missing("cpu", "fix")


def test_invalid_stages_of_a_recipe_are_refused():
    for changes, words in (
        ({"sampler": "fused-map"}, "sampler must be of SamplerSpec, it is 'fused-map'"),
        (
            {"features": Host},
            r"features must be of StoreSpec, it is the class Host: write Host\(\)",
        ),
        ({"features": Csr()}, "features must be of StoreSpec, it is Csr"),
        ({"order": None}, "order must be of OrderSpec, it is None"),
    ):
        with pytest.raises(UsageError, match=words):
            replace(BASELINE, **changes)


@dataclass(frozen=True)
class Unregistered(StoreSpec):
    name: ClassVar[str] = "unregistered"
    deep: bool = option(False, "nothing", (False, True))

    def build(self, job):
        raise NotImplementedError


def test_stages_of_a_recipe_need_not_be_registered():
    custom = replace(BASELINE, name="mine", features=Unregistered())
    made = custom.changed({"features.deep": True}).resolved("cpu")
    assert from_plain("mine", made.plain(), custom).features == Unregistered(deep=True)
    with pytest.raises(UsageError, match="unknown features 'unregistered'"):
        from_plain("mine", made.plain())


def test_custom_stage_cannot_have_a_built_in_name(monkeypatch):
    class Ours(Unregistered):
        name = "host"

    forged = replace(BASELINE, name="forged", features=Ours())
    monkeypatch.setattr(registry, "load", lambda kind, name: forged)
    built_in = {kind: type(getattr(BASELINE, kind)) for kind in NEEDED}
    monkeypatch.setattr(finding, "stage", lambda kind, name: built_in[kind])
    with pytest.raises(UsageError, match="features 'host' is a name of gnnbench's own"):
        find("forged")


def _derived(kind):
    base = type(getattr(BASELINE, kind))
    return type("Derived", (base,), {"__module__": __name__})()


@pytest.mark.parametrize("kind", NEEDED)
def test_derived_stage_without_its_own_name_is_refused(kind, monkeypatch):
    derived = _derived(kind)
    custom = replace(BASELINE, name="mine", **{kind: derived})
    load = registry.load
    monkeypatch.setattr(
        registry, "load", lambda k, n: custom if (k, n) == ("system", "mine") else load(k, n)
    )
    with pytest.raises(UsageError, match=f"{kind} '{derived.name}' is a name of gnnbench's own"):
        find("mine")


def test_derived_stage_with_a_registered_name_is_refused(monkeypatch):
    class Derived(Unregistered):
        pass

    custom = replace(BASELINE, name="mine", features=Derived())
    registered = {("system", "mine"): custom, ("features", "unregistered"): Unregistered}
    load, known = registry.load, registry.known
    monkeypatch.setattr(registry, "load", lambda k, n: registered.get((k, n)) or load(k, n))
    assert find("mine").definition is custom  # no registered stage has the name yet
    monkeypatch.setattr(
        registry, "known", lambda k: [*known(k), *(n for kind, n in registered if kind == k)]
    )
    with pytest.raises(
        UsageError, match="features 'unregistered' is a name of another, registered"
    ):
        find("mine")
    registered["system", "mine"] = replace(BASELINE, name="mine", features=Unregistered())
    assert find("mine").definition.features == Unregistered()


def test_derived_stage_inside_another_stage_is_refused(monkeypatch):
    inner = type("Derived", (Host,), {"__module__": __name__})()
    outer = Match()
    object.__setattr__(outer, "table", inner)  # bypasses the check of fields
    custom = replace(BASELINE, name="mine", features=outer)
    load = registry.load
    monkeypatch.setattr(
        registry, "load", lambda k, n: custom if (k, n) == ("system", "mine") else load(k, n)
    )
    with pytest.raises(UsageError, match="features 'host' is a name of gnnbench's own"):
        find("mine")
    with pytest.raises(UsageError, match=r"features 'match'\.table cannot be"):
        Match(table=inner)
