"""What is registered by name: ours, and what environment variables and distributions add."""

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
def test_every_stage_of_ours_is_one(kind, name):
    found = stage(kind, name)
    assert issubclass(found, Spec)
    assert (found.kind, found.name) == (kind, name) and found.summary
    for option in found.options().values():
        assert option.help
    plain = {"name": name, **{k: o.default for k, o in found.options().items()}}
    left_out = {
        "step": "eager", "linear": "narrowing", "partition": "none", "method": "default",
        "gradients": "flat",
    }  # fmt: skip
    for option, usual in left_out.items():
        assert plain.pop(option, usual) == usual  # as recipes have it that know no other
    assert found().plain() == plain


@pytest.mark.parametrize("name", registry.OURS["system"])
def test_every_system_of_ours_is_a_recipe(name):
    found = registry.load("system", name)
    assert isinstance(found, Recipe) and found.name == name and found.summary


def test_unknown_names_suggest_the_nearest():
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
def test_a_variable_adds_to_every_kind(kind, extra):
    extra(kind, " first = json:loads ,second=json:dumps,")
    ours = list(registry.OURS[kind])
    assert registry.known(kind) == [*ours, "first", "second"]
    assert registry.load(kind, "second").__name__ == "dumps"


@pytest.mark.parametrize("text", ["stranger", "a=json", "=json:loads", "a=json:loads,b"])
def test_a_variable_of_another_form_is_an_error(text, extra):
    extra("order", text)
    with pytest.raises(UsageError, match=r"GNNBENCH_EXTRA_ORDERS holds '.*name=module:object"):
        registry.known("order")


def test_entry_points_come_after_ours_by_name(extra, monkeypatch):
    found = EntryPoints(EntryPoint(n, "json:loads", "gnnbench.schedules") for n in ("zz", "aa"))
    monkeypatch.setattr(registry, "_installed", lambda: found)
    extra("schedule", "mm=json:dumps")
    ours = [
        "serial", "prefetch", "alternate", "producer-consumer", "data-parallel", "factored",
    ]  # fmt: skip
    assert registry.known("schedule") == [*ours, "aa", "mm", "zz"]
    assert registry.known("aggregate") == [
        "csr", "dgl", "gnnadvisor", "memory-aware", "pyg", "scatter", "spmm", "tuned",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", registry.KINDS)
def test_a_name_of_ours_is_nobody_elses(kind, extra, monkeypatch):
    name = next(iter(registry.OURS[kind]))
    extra(kind, f"{name}=json:loads")
    with pytest.raises(UsageError, match=f"json:loads is registered as the {kind} '{name}'"):
        registry.load(kind, name)
    extra(kind, "")
    group = f"gnnbench.{registry.GROUPS[kind]}"
    found = EntryPoints([EntryPoint(name, "a:b", group)])
    monkeypatch.setattr(registry, "_installed", lambda: found)
    with pytest.raises(UsageError, match="give it another name"):
        registry.known(kind)


def test_what_a_module_raises_on_import_is_passed_on(extra):
    extra("system", "gone=no_such_module:thing")
    with pytest.raises(ModuleNotFoundError):
        registry.load("system", "gone")


def test_samplers_of_the_library_and_of_other_packages():
    found = {n: registry.load("sampler", n) for n in registry.OURS["sampler"]}
    foreign = {n for n, cls in found.items() if not issubclass(cls, Sampler)}
    assert foreign == {"dgl", "graphbolt", "pyg", "pyg-native", "wholegraph"}


def test_sources_are_a_modules_file_or_a_package_s_python_files(extra, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "lone_sampler.py").write_text("a = 1\n")
    deep = tmp_path / "wide_sampler" / "inner"
    deep.mkdir(parents=True)
    (deep.parent / "__init__.py").write_text("")
    (deep / "pick.py").write_text("a = 1\n")
    extra("sampler", "lone=lone_sampler:a,wide=wide_sampler:a,gone=nowhere_sampler:a")

    def found(name):
        return registry.source_digest("sampler", name)

    who, lone = found("lone")
    wide = found("wide")[1]
    assert who == "the module 'lone_sampler'" and len(lone) == len(wide) == 16
    assert found("lone") == (who, lone) and found("gone")[1] == ""
    assert found("hop-by-hop") is None and found("nobody") is None
    (deep / "pick.py").write_text("a = 2\n")
    assert found("wide")[1] != wide and found("lone") == (who, lone)
    (tmp_path / "lone_sampler.py").write_text("a = 2\n")
    assert found("lone")[1] != lone


def test_a_plugin_takes_part_by_its_name_or_as_a_stage(extra):
    extra("sampler", "mine=lone_sampler:Mine")
    extra("system", "own=lone_system:OWN")
    assert registry.has_plugin("own", {})
    assert registry.has_plugin("baseline", {"sampler": "mine"})
    assert registry.has_plugin("baseline", {"sampler": {"name": "mine", "pick": "new"}})
    assert not registry.has_plugin("baseline", {"sampler": "hop-by-hop", "features": "mine"})
    assert not registry.has_plugin("baseline", {})
    assert registry.plugins() == ["mine", "own"]


def test_a_process_without_plugins_does_not_import_them(extra):
    extra("system", "own=lone_system:OWN")
    with registry.without_plugins():
        assert registry.load("system", "baseline").name == "baseline"
        with pytest.raises(RuntimeError, match="the system 'own' is a plug-in"):
            registry.load("system", "own")
    with pytest.raises(ModuleNotFoundError):  # it is imported again after the block
        registry.load("system", "own")
