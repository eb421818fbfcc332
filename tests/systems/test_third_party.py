"""Third-party stages and systems, installed or named by variables, are listed and run."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
import torch
from compose import counted, make, run

from gnnbench.core import registry
from gnnbench.core.cell import Until
from gnnbench.core.errors import UsageError
from gnnbench.harness import available
from gnnbench.systems.runtime.find import find

ROOT = Path(__file__).parents[2]
ENTRIES = {
    "system": {"thirdparty": "stranger_gnn:RECIPE", "ownloop": "stranger_gnn:OwnLoop",
               "brokenparty": "broken_gnn:System", "nosystem": "stranger_gnn:CHUNKS"},
    "sampler": {"theirs": "stranger_gnn:Theirs", "brokensampler": "broken_gnn:Sampler"},
    "features": {"chunked": "stranger_gnn:Chunked"},
}  # fmt: skip
VARIABLES = {
    registry.extra_variable(kind): ",".join(f"{n}={v}" for n, v in entries.items())
    for kind, entries in ENTRIES.items()
}


def write_modules(folder: Path) -> None:
    folder.mkdir()
    (folder / "stranger_gnn.py").write_text((Path(__file__).parent / "strangers.py").read_text())
    (folder / "broken_gnn.py").write_text("import a_package_that_nobody_has\n")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installed distribution that only this test's processes see."""
    site = tmp_path_factory.mktemp("installed") / "site"
    write_modules(site)
    info = site / "stranger-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1\n")
    groups = [
        "\n".join([f"[gnnbench.{registry.GROUPS[kind]}]", *(f"{n} = {v}" for n, v in e.items())])
        for kind, e in ENTRIES.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(groups) + "\n")
    return site


@pytest.fixture(scope="module")
def loose(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The modules only, to be named by environment variables."""
    folder = tmp_path_factory.mktemp("loose") / "modules"
    write_modules(folder)
    return folder


def clear_caches() -> None:
    """Clear registry caches and unload the third-party modules."""
    for cached in (registry.installed, registry.entries, available.availability):
        cached.cache_clear()
    for module in ("stranger_gnn", "broken_gnn"):
        sys.modules.pop(module, None)


@pytest.fixture
def gnnbench(said, monkeypatch, tmp_path):
    """Runs a command with a folder on the path of this process and its children."""

    def call(site: Path, *words: str, **variables: str) -> tuple[int, str, str]:
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site), str(ROOT)]))
        monkeypatch.setenv("GNNBENCH_DATA", str(tmp_path / "store"))
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        monkeypatch.syspath_prepend(str(site))
        clear_caches()
        return said(*words)

    yield call
    monkeypatch.undo()
    clear_caches()


@pytest.mark.parametrize("way", ["installed", "named"])
def test_third_party_systems_are_listed_with_broken_ones(way, installed, loose, gnnbench) -> None:
    site, variables = (installed, {}) if way == "installed" else (loose, VARIABLES)
    code, out, err = gnnbench(site, "list", "--json", **variables)
    assert (code, err) == (0, "")
    systems = {s["name"]: s for s in json.loads(out)["systems"]}
    assert {*registry.OURS["system"], *ENTRIES["system"]} == set(systems)
    theirs = systems["thirdparty"]
    assert (theirs["summary"], theirs["runs on"]) == ("a stranger's system", ["cpu"])
    assert {"sampler.depth", "features.rows"} <= set(theirs["settings"])
    own = systems["ownloop"]
    assert (own["runs on"], list(own["settings"])) == (["cpu"], ["size"])
    for name, words in (
        ("brokenparty", "a_package_that_nobody_has"), ("nosystem", "neither a Recipe nor a class"),
    ):  # fmt: skip
        assert systems[name]["runs on"] == [] and words in systems[name]["missing"]


RUN = (
    "run", "breakdown", "--profile", "smoke", "--repeats", "1", "--datasets", "mine",
    "-o", "batch_size=64", "-o", "fanouts=[3,2]", "--json",
)  # fmt: skip


def test_system_of_a_missing_package_is_unknown(loose: Path, gnnbench) -> None:
    code, _, err = gnnbench(loose, *RUN, "--systems", "thirdparty")
    assert code == 2
    assert "unknown system 'thirdparty'" in err


def test_third_party_systems_run_on_an_imported_graph(installed: Path, gnnbench, tmp_path) -> None:
    edges = [f"{u}\t{(u * 7 + k * k) % 900}\n" for u in range(900) for k in range(1, 6)]
    (tmp_path / "edges.tsv").write_text("# source\ttarget\n" + "".join(edges))
    words = ("data", "import", "edges.tsv", "--name", "mine", "--symmetric", "--feature-dim", "8")
    code, _, err = gnnbench(installed, *words)
    assert (code, err) == (0, "")
    systems = ("baseline", "thirdparty", "ownloop", "brokenparty")
    code, out, err = gnnbench(
        installed, *RUN, "--systems", ",".join(systems),
        "-o", "thirdparty.features.rows=32", "-o", "ownloop.size=2",
    )  # fmt: skip
    assert code == 6, err  # a named system is missing
    assert "Traceback" not in out + err
    rows = {row["system"]: row for row in json.loads(out)["cells"]}
    assert set(rows) == set(systems)
    ours, theirs, own, broken = (rows[s] for s in systems)
    for row in (ours, theirs, own):
        assert row["dataset"] == "mine"
        assert row["status"] in ("ok", "unstable"), row["reason"]
        assert row["epoch_wall_s"] > 0
    assert ours["verified"] is theirs["verified"] is True
    assert own["verified"] is False
    assert theirs["work_class"] == "identical"
    assert broken["status"] == "missing_dep"
    assert "a_package_that_nobody_has" in broken["reason"]


@pytest.fixture
def named(loose, monkeypatch):
    """Names the third-party modules by environment variables in this process."""
    monkeypatch.syspath_prepend(str(loose))
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    clear_caches()
    yield
    monkeypatch.undo()
    clear_caches()


@pytest.mark.usefixtures("one_thread", "named")
def test_third_party_stages_pass_the_gate(small_graph):
    system = make(small_graph, "thirdparty", {"features.rows": 50})
    assert (system.stages.sampler.sampler.depth, system.stages.store._rows) == (2, 50)
    report = system.check()
    assert report.ok and report.verified, report.reason
    audit = run(system)
    assert audit.ok, audit.reason
    counts = counted(audit)
    assert counts["features", "calls", "host"] == 4 < counts["features", "chunks", "host"]
    ours = make(small_graph)
    assert ours.check().digest == report.digest
    assert run(ours).loss == pytest.approx(audit.loss, rel=1e-5)


@pytest.mark.usefixtures("one_thread", "named")
def test_third_party_stages_work_in_built_in_systems(small_graph):
    settings = {"sampler": "theirs", "sampler.depth": 3, "features": "chunked"}
    system = make(small_graph, "baseline", settings)
    assert system.stages.sampler.sampler.depth == 3
    assert system.check().ok and run(system).ok


@pytest.mark.usefixtures("one_thread", "named")
def test_wrong_third_party_store_is_detected(small_graph, monkeypatch):
    system = make(small_graph, "thirdparty")
    original = system.stages.store.load
    monkeypatch.setattr(
        system.stages.store, "load", lambda batch: torch.zeros_like(original(batch))
    )
    report = system.check()
    assert not report.ok and "feature rows differ" in report.reason


@pytest.mark.usefixtures("named")
def test_third_party_settings_are_checked():
    thirdparty, own = find("thirdparty"), find("ownloop")
    assert (thirdparty.composed, own.composed) == (True, False)
    assert thirdparty.devices == ("cpu",)
    assert own.resolved({"sampler.pick": "floyd"}, "cpu", Until.COMPUTE).recipe == {"size": 1}
    for system, setting, words in (
        (thirdparty, {"sampler.depth": 4}, r"sampler 'theirs'\.depth cannot be 4; it is 1 to 3"),
        (thirdparty, {"features.row": 4}, "has no setting 'row'; did you mean 'rows'"),
        (own, {"size": True}, "size cannot be true; it is 1 to 4"),
        (own, {"sizes": 1}, "system 'ownloop' has no setting 'sizes'; did you mean 'size'"),
    ):
        with pytest.raises(UsageError, match=words):
            system.resolved(setting, "cpu", Until.COMPUTE)
    with pytest.raises(TypeError, match="neither a Recipe nor a class derived from System"):
        find("nosystem")


@pytest.mark.usefixtures("named")
def test_broken_sampler_is_listed_with_its_problem():
    import gnnbench

    infos = {info.name: info for info in gnnbench.samplers()}
    assert infos["theirs"].options["depth"] == "how deep; 1 to 3"
    assert "a_package_that_nobody_has" in infos["brokensampler"].problem
    with pytest.raises(Exception, match="sampler 'brokensampler' does not import"):
        find("baseline").resolved({"sampler": "brokensampler"}, "cpu", Until.COMPUTE)
