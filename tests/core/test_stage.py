"""A stage as a value: checked when made, changed by name, resolved for a device; by name."""

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


def test_fields_are_options_with_their_defaults():
    found = Kept.options()
    assert list(found) == ["share", "window", "policy"]
    assert (found["window"].default, found["window"].help) == (4, "batches")
    assert found["share"].choices is None and found["policy"].choices == ("lru", "static")
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
def test_values_are_checked_when_it_is_made_and_when_it_is_changed(values, words):
    with pytest.raises(UsageError, match=words):
        Kept(**values)
    with pytest.raises(UsageError, match=words):
        replace(Kept(), **values)
    ((name, value),) = values.items()
    with pytest.raises(UsageError, match=words):
        Kept().changed(name, value)


@dataclass(frozen=True)
class Held(Spec):
    """A stage with a field that is a stage."""

    kind: ClassVar[str] = "order"
    name: ClassVar[str] = "held"
    below: Spec | str = stage_option("own", "what is below", {"kept": Kept, "none": Nothing})


def test_a_field_may_be_a_stage():
    """By its name, by name and fields, or as it is; its fields are one dot further on."""
    assert Held().plain() == {"name": "held", "below": "own"}
    assert list(Held().settings()) == ["below"]
    made = Held(below="kept")
    assert made.below == Kept() and made == Held(below=Kept()) == Held().changed("below", "kept")
    assert list(made.settings()) == ["below", "below.share", "below.window", "below.policy"]
    other = made.changed("below.window", 8)
    assert other.below == Kept(window=8) and made.below.window == 4
    assert other.plain()["below"] == {"name": "kept", "share": 0.5, "window": 8, "policy": "lru"}
    assert Held(below=other.plain()["below"]) == other
    assert Held(below="none").plain() == {"name": "held", "below": "none"}  # it has no fields
    assert other.changed("below", "kept") == made  # a new one begins with its defaults


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("below", "keptt"), r"order 'held'\.below cannot be keptt; it is own, kept or none"),
        (("below", 3), r"below cannot be 3; it is own, kept or none"),
        (("below", {"name": "lost"}), r"it is own, kept or none"),
        (("below.windw", 3), "'held' has no setting 'below.windw'; did you mean 'below.window'"),
        (("below.window", 9), r"order 'kept'\.window cannot be 9; it is 1 to 8"),
    ],
)
def test_what_a_field_that_is_a_stage_cannot_be(change, words):
    with pytest.raises(UsageError, match=words):
        Held(below="kept").changed(*change)
    with pytest.raises(UsageError, match=r"has no setting 'below\.window'"):
        Held().changed("below.window", 3)


def test_changed_makes_another_one():
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


def test_a_stage_that_does_not_run_on_a_device_says_where_it_does():
    assert Kept().resolved("cuda") == Kept()
    with pytest.raises(
        UnsupportedError, match="order 'kept' does not run on cpu; it does on: cuda"
    ):
        Kept().resolved("cpu")
    with pytest.raises(UnsupportedError, match="features 'uva' does not run on cpu"):
        Uva().resolved("cpu")
    assert Host().resolved("cpu") == Host().resolved("cuda") == Host()


def test_a_samplers_defaults_are_those_of_the_device():
    ours = native("hop-by-hop")
    here, there = ours.resolved("cpu"), ours.resolved("cuda")
    assert (here.pick, here.frontier, here.topology) == ("floyd", "cumulative", "cpu")
    assert (there.pick, there.frontier, there.topology) == ("reservoir", "cumulative", "gpu")
    assert DglSampler(topology="cpu").resolved("cuda").topology == "cpu"  # drawn by the host
    off = native("hop-by-hop", topology="cpu").resolved("cuda")
    assert (off.pick, off.topology) == ("floyd", "cpu")  # drawn on the CPU
    assert native("hop-by-hop", topology="uva").resolved("cuda").pick == "reservoir"
    assert native("hop-by-hop", pick="floyd").resolved("cuda").pick == "floyd"
    for spec in (here, there, off):
        assert spec.resolved("cuda" if spec is not here else "cpu") == spec  # once is enough
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
def test_what_a_sampler_cannot_do(sampler, device, options, words):
    with pytest.raises(UnsupportedError, match=words):
        native(sampler, **options).resolved(device)


def test_a_samplers_own_options_are_fields():
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


def test_a_stage_of_another_kind_is_refused(extra):
    extra("features", "from gnnbench.pipelines.serial import Serial as Strange")
    with pytest.raises(UsageError, match="registered as a features, but it is a schedule"):
        stage("features", "strange")


@pytest.mark.parametrize("kind", ["sampler", "features"])
@pytest.mark.parametrize("text", ["Strange = [1]", "class Strange: pass", "def Strange(): pass"])
def test_what_is_no_stage_is_told(extra, kind, text):
    extra(kind, text)
    with pytest.raises(UsageError, match=f"'strange' of gnnbench.{registry.GROUPS[kind]} is no"):
        stage(kind, "strange")


def test_a_stage_that_does_not_import_is_missing(extra):
    extra("features", "import a_package_that_nobody_has")
    with pytest.raises(MissingError, match=r"features 'strange' does not import \(No module"):
        stage("features", "strange")
