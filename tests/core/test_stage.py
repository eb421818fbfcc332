"""Stages as values: checked when created, changed by name, resolved for a device."""

import sys
from dataclasses import FrozenInstanceError, dataclass, replace
from typing import ClassVar

import pytest

from gnnbench.core import registry
from gnnbench.core.errors import MissingError, UnsupportedError, UsageError
from gnnbench.core.stage import Spec, option, stage_option
from gnnbench.features.spec import Host, Uva
from gnnbench.pipelines.find import stage
from gnnbench.sampling.dgl import DglSampler
from gnnbench.sampling.native import native


@dataclass(frozen=True)
class Kept(Spec):
    """A stage with three options."""

    kind: ClassVar[str] = "order"
    name: ClassVar[str] = "kept"
    devices: ClassVar[tuple[str, ...]] = ("cuda",)
    share: float = option(0.5, "of the rows")
    window: int = option(4, "batches", range(1, 9))
    policy: str = option("lru", "who goes", ("lru", "static"))


@dataclass(frozen=True)
class Nothing(Spec):
    """A stage without options."""

    kind: ClassVar[str] = "order"
    name: ClassVar[str] = "none"


def test_fields_are_options_with_defaults():
    options = Kept.options()
    assert list(options) == ["share", "window", "policy"]
    assert (options["window"].default, options["window"].help) == (4, "batches")
    assert options["share"].choices is None and options["policy"].choices == ("lru", "static")
    assert Kept(policy="static").plain() == {
        "name": "kept", "share": 0.5, "window": 4, "policy": "static",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"window": 9}, r"order 'kept'\.window cannot be 9; it is 1 to 8"),
        ({"window": True}, r"cannot be true; it is 1 to 8"),
        ({"window": 4.0}, r"cannot be 4\.0"),
        ({"policy": "fifo"}, r"cannot be fifo; it is lru or static"),
    ],
)
def test_values_are_checked_on_creation_and_change(values, words):
    with pytest.raises(UsageError, match=words):
        Kept(**values)
    with pytest.raises(UsageError, match=words):
        replace(Kept(), **values)
    ((name, value),) = values.items()
    with pytest.raises(UsageError, match=words):
        Kept().changed(name, value)


@dataclass(frozen=True)
class Outer(Spec):
    """A stage with a field that is a stage."""

    kind: ClassVar[str] = "order"
    name: ClassVar[str] = "outer"
    below: Spec | str = stage_option("own", "what is below", {"kept": Kept, "none": Nothing})


def test_field_may_be_a_stage():
    """Given as a name, as name and fields, or as a stage; its fields have dotted paths."""
    assert Outer().plain() == {"name": "outer", "below": "own"}
    assert list(Outer().settings()) == ["below"]
    with_kept = Outer(below="kept")
    assert with_kept.below == Kept() and with_kept == Outer(below=Kept()) == Outer().changed(
        "below", "kept"
    )
    assert list(with_kept.settings()) == ["below", "below.share", "below.window", "below.policy"]
    other = with_kept.changed("below.window", 8)
    assert other.below == Kept(window=8) and with_kept.below.window == 4
    assert other.plain()["below"] == {"name": "kept", "share": 0.5, "window": 8, "policy": "lru"}
    assert Outer(below=other.plain()["below"]) == other
    assert Outer(below="none").plain() == {"name": "outer", "below": "none"}  # without fields
    assert other.changed("below", "kept") == with_kept  # a new stage has its defaults


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("below", "keptt"), r"order 'outer'\.below cannot be keptt; it is own, kept or none"),
        (("below", 3), r"below cannot be 3; it is own, kept or none"),
        (("below", {"name": "lost"}), r"it is own, kept or none"),
        (("below.windw", 3), "'outer' has no setting 'below.windw'; did you mean 'below.window'"),
        (("below.window", 9), r"order 'kept'\.window cannot be 9; it is 1 to 8"),
    ],
)
def test_invalid_nested_stage_is_refused(change, words):
    with pytest.raises(UsageError, match=words):
        Outer(below="kept").changed(*change)
    with pytest.raises(UsageError, match=r"has no setting 'below\.window'"):
        Outer().changed("below.window", 3)


def test_changed_returns_a_new_stage():
    one = Kept()
    other = one.changed("window", 8).changed("policy", "static")
    assert (one.window, other.window, other.policy, other.share) == (4, 8, "static", 0.5)
    assert one == Kept() != other
    with pytest.raises(FrozenInstanceError):
        one.window = 3
    with pytest.raises(UsageError, match="has no setting 'windw'; did you mean 'window'"):
        one.changed("windw", 3)
    with pytest.raises(UsageError, match="has no setting 'name'"):
        one.changed("name", "other")


def test_unsupported_device_names_the_supported_ones():
    assert Kept().resolved("cuda") == Kept()
    with pytest.raises(
        UnsupportedError, match="order 'kept' does not run on cpu; it does on: cuda"
    ):
        Kept().resolved("cpu")
    with pytest.raises(UnsupportedError, match="features 'uva' does not run on cpu"):
        Uva().resolved("cpu")
    assert Host().resolved("cpu") == Host().resolved("cuda") == Host()


def test_defaults_of_a_sampler_depend_on_the_device():
    ours = native("hop-by-hop")
    on_cpu, on_gpu = ours.resolved("cpu"), ours.resolved("cuda")
    assert (on_cpu.pick, on_cpu.frontier, on_cpu.topology) == ("floyd", "cumulative", "cpu")
    assert (on_gpu.pick, on_gpu.frontier, on_gpu.topology) == ("reservoir", "cumulative", "gpu")
    assert DglSampler(topology="cpu").resolved("cuda").topology == "cpu"  # sampled by the host
    off = native("hop-by-hop", topology="cpu").resolved("cuda")
    assert (off.pick, off.topology) == ("floyd", "cpu")  # sampled on the CPU
    assert native("hop-by-hop", topology="uva").resolved("cuda").pick == "reservoir"
    assert native("hop-by-hop", pick="floyd").resolved("cuda").pick == "floyd"
    for spec in (on_cpu, on_gpu, off):
        assert (
            spec.resolved("cuda" if spec is not on_cpu else "cpu") == spec
        )  # resolving is idempotent
    assert (DglSampler().resolved("cpu").pick, DglSampler().resolved("cpu").frontier) == (
        "dgl", "cumulative",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("sampler", "device", "options", "words"),
    [
        ("pgsampler", "cpu", {"frontier": "new"}, "no frontier 'new'; it has: cumulative"),
        ("pgsampler", "cpu", {"pick": "random_walk"}, "no pick 'random_walk'"),
        ("fused-map", "cpu", {"pick": "nonsense"}, "no pick 'nonsense'; it has: floyd"),
        ("fused-map", "cpu", {"pick": 3}, "no pick '3'"),
        ("fused-map", "cpu", {"topology": "uva"}, "from a GPU; give --device cuda"),
        ("fused-map", "cpu", {"topology": "gpu"}, "from a GPU; give --device cuda"),
        ("dgl-fusion", "cpu", {}, "does not run on cpu; it does on: cuda"),
        ("dgl-fusion", "cuda", {"topology": "cpu"}, "does not sample on cpu; it does on: cuda"),
    ],
)
def test_unsupported_options_of_a_sampler(sampler, device, options, words):
    with pytest.raises(UnsupportedError, match=words):
        native(sampler, **options).resolved(device)


def test_own_options_of_a_sampler_are_fields():
    spec = native("pgsampler", fetch_size=7)
    assert spec.own() == {"fetch_size": 7, "hubs": "split", "worker": "warp"}
    assert spec.plain()["fetch_size"] == 7
    assert native("fused-map").own() == {}
    with pytest.raises(UsageError, match=r"'pgsampler'\.fetch_size cannot be 40; it is 1 to 32"):
        spec.changed("fetch_size", 40)
    with pytest.raises(UsageError, match="'fused-map' has no setting 'fetch_size'"):
        native("fused-map").changed("fetch_size", 3)
    with pytest.raises(
        UsageError, match=r"topology cannot be disk; it is default, gpu, uva or cpu"
    ):
        native("fused-map", topology="disk")
    assert native("pgsampler") == native("pgsampler") != native("fused-map")


@pytest.fixture
def extra(monkeypatch, tmp_path):
    def put(kind, text):
        (tmp_path / "strange_stages.py").write_text(text)
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.setenv(registry.extra_variable(kind), "strange=strange_stages:Strange")
        registry.entries.cache_clear()

    yield put
    sys.modules.pop("strange_stages", None)
    monkeypatch.undo()
    registry.entries.cache_clear()


def test_registered_stage_of_another_kind_is_refused(extra):
    extra("features", "from gnnbench.pipelines.serial import Serial as Strange")
    with pytest.raises(UsageError, match="registered as a features, but it is a schedule"):
        stage("features", "strange")


@pytest.mark.parametrize("kind", ["sampler", "features"])
@pytest.mark.parametrize("text", ["Strange = [1]", "class Strange: pass", "def Strange(): pass"])
def test_registered_object_that_is_no_stage_is_refused(extra, kind, text):
    extra(kind, text)
    with pytest.raises(UsageError, match=f"'strange' of gnnbench.{registry.GROUPS[kind]} is no"):
        stage(kind, "strange")


def test_stage_that_does_not_import_is_missing(extra):
    extra("features", "import a_package_that_nobody_has")
    with pytest.raises(MissingError, match=r"features 'strange' does not import \(No module"):
        stage("features", "strange")
