"""What ``gnnbench doctor`` says of PyG's sampling extensions."""

import pytest

from gnnbench import doctor
from gnnbench.foreign import pyg_import


@pytest.mark.parametrize(
    ("here", "ok", "words"),
    [
        (["pyg-lib", "torch-sparse"], True, ("pyg-lib", "torch-sparse")),
        (["torch-sparse"], False, ("torch-sparse",)),
        ([], False, ("none is installed", "pyg-native-sampler")),
    ],
)
def test_pygs_extensions_and_how_to_get_the_better_one(here, ok, words, monkeypatch):
    monkeypatch.setattr(pyg_import, "extensions", lambda: here)
    (entry,) = [e for e in doctor._packages() if e["what"] == "PyG sampling extension"]
    assert entry["ok"] == ok
    assert all(word in entry["found"] for word in words)
    assert ("https://data.pyg.org/whl/torch-" in entry["fix"]) == (not ok)


BARE = """
import gnnbench
from gnnbench.composition.system import System


class Bare(System):
    def setup(self): ...
    def check(self): ...
    def run_epoch(self, epoch, timeline): ...
    def audit(self, epoch): ...


class Broken(Bare):
    @classmethod
    def missing(cls, device):
        raise RuntimeError("no such disk")


class Options(Bare):
    options = None


class Sampler(gnnbench.Sampler):
    def draw(self, seeds, **others): ...
"""


@pytest.fixture
def plug_ins(monkeypatch, tmp_path):
    """A package with systems and a sampler that say as little of themselves as they may."""
    from gnnbench import registry
    from gnnbench.runner import available

    def clear():
        for cache in (registry._installed, registry.entries, available.availability):
            cache.cache_clear()

    (tmp_path / "bare_plug_ins.py").write_text(BARE)
    about = tmp_path / "bare_plug_ins-1.2.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: bare_plug_ins\nVersion: 1.2\n")
    names = {"bare": "Bare", "broken": "Broken", "bad_options": "Options", "gone": "Gone"}
    lines = [f"{name} = bare_plug_ins:{value}" for name, value in names.items()]
    text = ["[gnnbench.systems]", *lines, "[gnnbench.samplers]", "bare = bare_plug_ins:Sampler"]
    (about / "entry_points.txt").write_text("\n".join(text) + "\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    clear()
    yield about
    monkeypatch.undo()
    clear()


def test_plug_ins_are_listed_whatever_they_leave_out_or_raise(plug_ins):
    found = {entry["name"]: entry for entry in doctor.systems()}
    assert (found["bare"]["runs on"], found["bare"]["missing"]) == (["cpu"], "")
    mend = "mend the package bare_plug_ins 1.2, or uninstall it"
    for name, what in (
        ("broken", "system 'broken' cannot be used (RuntimeError: no such disk)"),
        ("bad_options", "system 'bad_options' cannot be used (TypeError: "),
        ("gone", "system 'gone' does not import (AttributeError: "),
    ):
        assert found[name]["runs on"] == []
        assert found[name]["missing"].startswith(what) and found[name]["missing"].endswith(mend)
    assert found["baseline"]["missing"] == ""
    assert set(doctor.examine()) == {"checks", "systems", "datasets"}


def test_a_plug_in_without_a_name_or_a_summary_can_be_used(plug_ins):
    import gnnbench
    from gnnbench.composition.find import find

    assert find("bare").resolved({}, "cpu", 0).recipe == {} and find("bare").summary == ""
    known = {info.name: info for info in gnnbench.samplers()}
    assert known["bare"].problem == "" and known["bare"].summary == ""


def test_a_name_of_ours_names_the_package(plug_ins):
    from gnnbench import registry
    from gnnbench.errors import UsageError

    (plug_ins / "entry_points.txt").write_text(
        "[gnnbench.systems]\nbaseline = bare_plug_ins:Bare\n"
    )
    registry._installed.cache_clear()
    registry.entries.cache_clear()
    with pytest.raises(UsageError, match=r"another name in the package bare_plug_ins 1\.2"):
        doctor.systems()
