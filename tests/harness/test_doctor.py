"""Entries of ``gnnbench doctor``: PyG's extensions, CUDA, frameworks and plug-ins."""

import pytest

from gnnbench.harness import doctor, same_name
from gnnbench.kernels import pyg_import


@pytest.mark.parametrize(
    ("here", "ok", "words"),
    [
        (["pyg-lib", "torch-sparse"], True, ("pyg-lib", "torch-sparse")),
        (["torch-sparse"], False, ("torch-sparse",)),
        ([], False, ("none is installed", "pyg-native-sampler")),
    ],
)
def test_doctor_reports_pyg_extensions_and_how_to_install_pyg_lib(here, ok, words, monkeypatch):
    monkeypatch.setattr(pyg_import, "extensions", lambda: here)
    (entry,) = [e for e in doctor._packages() if e["what"] == "PyG sampling extension"]
    assert entry["ok"] == ok
    assert all(word in entry["found"] for word in words)
    assert ("https://data.pyg.org/whl/torch-" in entry["fix"]) == (not ok)


@pytest.mark.parametrize(
    ("info", "torch_cuda", "gpu", "missing"),
    [
        ({}, None, False, "NO_GPU"),
        ({}, None, True, "NOT_COMPILED"),
        ({"cuda_built": True}, None, True, "CPU_TORCH"),
        ({"cuda_built": True}, "13.0", False, "NO_GPU"),
    ],
)
def test_doctor_and_run_give_the_same_fix_for_missing_cuda(
    info, torch_cuda, gpu, missing, monkeypatch
):
    import torch

    from gnnbench.kernels import library
    from gnnbench.kernels import missing as needs

    built = {"cpu_built": True, "cuda_built": False, "torch": "2.11.0"}
    known = {**library.native_info(), **built, **info}
    monkeypatch.setattr(library, "native_info", lambda: known)
    monkeypatch.setattr(library, "has_cuda_library", lambda: bool(info and torch_cuda))
    monkeypatch.setattr(torch.version, "cuda", torch_cuda)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: bool(gpu and torch_cuda))
    monkeypatch.setattr(needs.nvml, "gpu_count", lambda: int(gpu))
    monkeypatch.setattr(doctor.machine, "gpus", lambda: [{"name": "X", "memory_bytes": 1}] * gpu)
    what = getattr(needs, missing)
    assert needs.native_missing("cuda") == what
    problems = [e for e in (*doctor._native()[1:], doctor._gpu()) if not e["ok"]]
    assert what.reason in [e["found"] for e in problems]
    assert {e["fix"] for e in problems} == {what.fix}


def test_doctor_and_run_give_the_same_fix_for_a_missing_framework(monkeypatch):
    from gnnbench.kernels import dgl_import

    monkeypatch.setattr(dgl_import.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(doctor.machine, "versions", lambda: dict.fromkeys(doctor.machine.PACKAGES))
    fixes = {e["what"]: e["fix"] for e in doctor._packages()}
    assert fixes["dgl"] == dgl_import.dgl_missing().fix
    assert fixes["torch-geometric"] == "pip install -c constraints.txt torch-geometric"


@pytest.fixture
def other(tmp_path):
    """A folder with another package named gnnbench, as an installation by pip leaves it."""
    (tmp_path / "gnnbench").mkdir()
    (tmp_path / "gnnbench" / "__init__.py").write_text("")
    information = tmp_path / "gnnbench-0.1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: gnnbench\nVersion: 0.1.0\n")
    return tmp_path


def test_doctor_reports_another_package_of_this_name(other, monkeypatch):
    assert doctor._installed()["ok"]
    monkeypatch.chdir(other)
    entry = doctor._installed()
    assert not entry["ok"] and str(other / "gnnbench") in entry["found"]
    assert "another environment or folder" in entry["fix"]


def test_doctor_reports_a_distribution_that_has_replaced_this_one(other, monkeypatch):
    monkeypatch.setattr(same_name, "other_packages", list)
    monkeypatch.syspath_prepend(str(other))
    entry = doctor._installed()
    assert not entry["ok"] and "make install" in entry["fix"]


def test_this_package_is_no_other_one(other):
    ours = str(same_name.HERE.parent)
    assert same_name.other_packages([ours, str(other), ours]) == [other / "gnnbench"]
    assert not same_name.is_replaced([ours]) and same_name.is_replaced([str(other)])


BARE = """
import gnnbench
from gnnbench.systems.runtime.system import System


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
    """Installs a package whose systems and sampler define only what is required."""
    from gnnbench.core import registry
    from gnnbench.harness import available

    def clear():
        for cache in (registry.installed, registry.entries, available.availability):
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


def test_incomplete_and_broken_plug_ins_are_listed(plug_ins):
    entries = {entry["name"]: entry for entry in doctor.systems()}
    assert (entries["bare"]["runs on"], entries["bare"]["missing"]) == (["cpu"], "")
    fix = "mend the package bare_plug_ins 1.2, or uninstall it"
    for name, what in (
        ("broken", "system 'broken' cannot be used (RuntimeError: no such disk)"),
        ("bad_options", "system 'bad_options' cannot be used (TypeError: "),
        ("gone", "system 'gone' does not import (AttributeError: "),
    ):
        assert entries[name]["runs on"] == []
        assert entries[name]["missing"].startswith(what) and entries[name]["missing"].endswith(fix)
    assert entries["baseline"]["missing"] == ""
    assert set(doctor.examine()) == {"checks", "systems", "datasets"}


def test_plug_in_without_name_or_summary_can_be_used(plug_ins):
    import gnnbench
    from gnnbench.systems.runtime.find import find

    assert find("bare").resolved({}, "cpu", 0).recipe == {} and find("bare").summary == ""
    known = {info.name: info for info in gnnbench.samplers()}
    assert known["bare"].problem == "" and known["bare"].summary == ""


def test_plug_in_with_a_built_in_name_is_refused_with_its_package(plug_ins):
    from gnnbench.core import registry
    from gnnbench.core.errors import UsageError

    (plug_ins / "entry_points.txt").write_text(
        "[gnnbench.systems]\nbaseline = bare_plug_ins:Bare\n"
    )
    registry.installed.cache_clear()
    registry.entries.cache_clear()
    with pytest.raises(UsageError, match=r"another name in the package bare_plug_ins 1\.2"):
        doctor.systems()
