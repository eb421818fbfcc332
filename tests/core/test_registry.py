"""Registered names: built-in ones, and those of environment variables and distributions."""

from importlib.metadata import EntryPoint, EntryPoints

import pytest

from gnnbench.core import registry
from gnnbench.core.errors import UsageError
from gnnbench.core.stage import Spec
from gnnbench.pipelines.find import stage
from gnnbench.sampling.base import Sampler
from gnnbench.systems.runtime.recipe import NEEDED, Recipe


@pytest.fixture
def extra(monkeypatch):
    def put(kind, text):
        monkeypatch.setenv(registry.extra_variable(kind), text)
        registry.entries.cache_clear()

    yield put
    monkeypatch.undo()
    registry.entries.cache_clear()


def test_kinds_are_the_stages_of_a_recipe_and_systems():
    assert set(registry.KINDS) == {registry.SYSTEM, *NEEDED} == set(registry.OURS)
    assert registry.GROUPS["features"] == "features" and registry.GROUPS["order"] == "orders"
    assert registry.extra_variable("features") == "GNNBENCH_EXTRA_FEATURES"
    assert registry.extra_variable("system") == "GNNBENCH_EXTRA_SYSTEMS"


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind in NEEDED for name in registry.OURS[kind]]
)
def test_built_in_stages_are_specs(kind, name):
    spec = stage(kind, name)
    assert issubclass(spec, Spec)
    assert (spec.kind, spec.name) == (kind, name) and spec.summary
    for option in spec.options().values():
        assert option.help
    plain = {"name": name, **{k: o.default for k, o in spec.options().items()}}
    left_out = {
        "step": "eager", "linear": "narrowing", "partition": "none", "method": "default",
        "gradients": "flat", "profit": "all-batches", "backward": "gather",
        "row_worker": "warp", "id_map": "three-pass", "edges": "csr",
    }  # fmt: skip
    left_out |= {
        "fastsample": {"kernel": "vectorized"}, "greedy": {"waiting": "device"},
        "graphbolt": {"file": "none", "cache_gib": 0.0},
        "factored": {"marks": False, "staleness": 0, "standby_ratio": "features"},
    }.get(name, {})  # fmt: skip
    if name == "producer-consumer":
        left_out |= {"processes": 2, "trainer_share": 100}
    if name == "data-parallel":
        left_out["batches"] = "split"  # ``alternate`` has another option of this name
        left_out |= {"processes": 1, "share": 100, "trainer_share": 100}
    if name == "dgl-fusion":
        left_out["blocks"] = "one-warp"  # ``uva`` has another option of this name
    for option, default in left_out.items():
        assert plain.pop(option, default) == default  # left out of recipes at this value
    if spec.implementation != 1:
        plain["implementation"] = spec.implementation
    assert spec().plain() == plain


@pytest.mark.parametrize("name", registry.OURS["system"])
def test_built_in_systems_are_recipes(name):
    recipe = registry.load("system", name)
    assert isinstance(recipe, Recipe) and recipe.name == name and recipe.summary


def test_unknown_names_suggest_the_nearest_one():
    with pytest.raises(UsageError, match="unknown system 'basline'; did you mean 'baseline'"):
        registry.load("system", "basline")
    with pytest.raises(
        UsageError, match="unknown features 'disk'; known are cache, dgl, gpu, graphbolt, host"
    ):
        registry.load("features", "disk")
    with pytest.raises(UsageError, match="sampler 'baseline' is called 'hop-by-hop' now"):
        registry.load("sampler", "baseline")
    with pytest.raises(UsageError, match="schedule must be a name, not 3"):
        registry.load("schedule", 3)


@pytest.mark.parametrize("kind", registry.KINDS)
def test_variable_adds_names_to_every_kind(kind, extra):
    extra(kind, " first = json:loads ,second=json:dumps,")
    ours = list(registry.OURS[kind])
    assert registry.known(kind) == [*ours, "first", "second"]
    assert registry.load(kind, "second").__name__ == "dumps"


@pytest.mark.parametrize("text", ["stranger", "a=json", "=json:loads", "a=json:loads,b"])
def test_malformed_variable_is_an_error(text, extra):
    extra("order", text)
    with pytest.raises(UsageError, match=r"GNNBENCH_EXTRA_ORDERS holds '.*name=module:object"):
        registry.known("order")


def test_entry_points_follow_built_in_names(extra, monkeypatch):
    installed = EntryPoints(EntryPoint(n, "json:loads", "gnnbench.schedules") for n in ("zz", "aa"))
    monkeypatch.setattr(registry, "installed", lambda: installed)
    extra("schedule", "mm=json:dumps")
    ours = [
        "serial", "prefetch", "alternate", "producer-consumer", "data-parallel", "factored",
    ]  # fmt: skip
    assert registry.known("schedule") == [*ours, "aa", "mm", "zz"]
    assert registry.known("aggregate") == [
        "csr", "dgl", "gnnadvisor", "memory-aware", "memory-aware-warp", "pyg", "scatter",
        "spmm", "tuned",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", registry.KINDS)
def test_plug_in_with_a_built_in_name_is_refused(kind, extra, monkeypatch):
    name = next(iter(registry.OURS[kind]))
    extra(kind, f"{name}=json:loads")
    with pytest.raises(UsageError, match=f"json:loads is registered as the {kind} '{name}'"):
        registry.load(kind, name)
    extra(kind, "")
    group = f"gnnbench.{registry.GROUPS[kind]}"
    installed = EntryPoints([EntryPoint(name, "a:b", group)])
    monkeypatch.setattr(registry, "installed", lambda: installed)
    with pytest.raises(UsageError, match="give it another name"):
        registry.known(kind)


def test_import_error_of_a_plug_in_is_passed_on(extra):
    extra("system", "gone=no_such_module:thing")
    with pytest.raises(ModuleNotFoundError):
        registry.load("system", "gone")


def test_foreign_samplers_are_no_native_samplers():
    samplers = {n: registry.load("sampler", n) for n in registry.OURS["sampler"]}
    foreign = {n for n, cls in samplers.items() if not issubclass(cls, Sampler)}
    assert foreign == {"cugraph-pyg", "dgl", "graphbolt", "pyg", "pyg-native", "wholegraph"}


def test_source_digest_covers_a_module_or_a_package(extra, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "lone_sampler.py").write_text("a = 1\n")
    deep = tmp_path / "wide_sampler" / "inner"
    deep.mkdir(parents=True)
    (deep.parent / "__init__.py").write_text("")
    (deep / "pick.py").write_text("a = 1\n")
    extra("sampler", "lone=lone_sampler:a,wide=wide_sampler:a,gone=nowhere_sampler:a")

    def digest(name):
        return registry.source_digest("sampler", name)

    who, lone = digest("lone")
    wide = digest("wide")[1]
    assert who == "the module 'lone_sampler'" and len(lone) == len(wide) == 16
    assert digest("lone") == (who, lone) and digest("gone")[1] == ""
    assert digest("hop-by-hop") is None and digest("nobody") is None
    (deep / "pick.py").write_text("a = 2\n")
    assert digest("wide")[1] != wide and digest("lone") == (who, lone)
    (tmp_path / "lone_sampler.py").write_text("a = 2\n")
    assert digest("lone")[1] != lone


def test_plug_in_is_detected_as_a_system_or_a_stage(extra):
    extra("sampler", "mine=lone_sampler:Mine")
    extra("system", "own=lone_system:OWN")
    assert registry.has_plugin("own", {})
    assert registry.has_plugin("baseline", {"sampler": "mine"})
    assert registry.has_plugin("baseline", {"sampler": {"name": "mine", "pick": "new"}})
    assert not registry.has_plugin("baseline", {"sampler": "hop-by-hop", "features": "mine"})
    assert not registry.has_plugin("baseline", {})
    assert registry.plugins() == ["mine", "own"]


def test_process_without_plugins_does_not_import_them(extra):
    extra("system", "own=lone_system:OWN")
    with registry.without_plugins():
        assert registry.load("system", "baseline").name == "baseline"
        with pytest.raises(RuntimeError, match="the system 'own' is a plug-in"):
            registry.load("system", "own")
    with pytest.raises(ModuleNotFoundError):  # it is imported again after the block
        registry.load("system", "own")
