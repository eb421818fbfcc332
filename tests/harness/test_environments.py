"""``run --env``: one system of somebody's own package, in two versions, side by side."""

import csv
import json
import os
import subprocess
import sys
from contextlib import contextmanager
from types import ModuleType

import pytest
from environments import install, make_environment

from gnnbench.config import experiment
from gnnbench.core import registry
from gnnbench.core.bootstrap import PACKAGE, bootstrap
from gnnbench.core.errors import MissingError, UsageError
from gnnbench.harness import folder, remote_answers
from gnnbench.harness.remote_environment import open_environments

ENTRY = "[gnnbench.systems]\nmine = mine_gnn:RECIPE\n[gnnbench.samplers]\nmine = mine_gnn:Mine\n"
# The newer version draws every batch twice: the same edges, later.
MINE = """\
from dataclasses import replace
from gnnbench.sampling.hop_by_hop import HopByHop
from gnnbench.sampling.native import native
from gnnbench.systems.baseline import BASELINE

class Mine(HopByHop):
    name = "mine"
    summary = "drawn {times} times"
    devices = ("cpu",)

    def sample(self, *words, **named):
        for _ in range({times}):
            batch = super().sample(*words, **named)
        return batch

RECIPE = replace(BASELINE, name="mine", summary="a user's own", sampler=native("mine"))
"""
RUN = (
    "run", "sampling", "--profile", "smoke", "--datasets", "products~twin@0.001", "--repeats", "1",
    "--systems", "mine", "-o", "batch_size=64", "-o", "fanouts=[3,2]", "-o", "rounds=2",
    "-o", "threads=1",
)  # fmt: skip
# What an editable gnnbench of an environment's own does there: its finder comes before all others.
EDITABLE = """\
import sys
from importlib.util import spec_from_file_location

class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] == "gnnbench":
            return spec_from_file_location(
                name, {file!r}, submodule_search_locations=[{file!r} + ".d"])

sys.meta_path.insert(0, Finder)
"""


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    """An environment with torch, numpy and version 1 of the package."""
    venv = tmp_path_factory.mktemp("old") / "venv"
    site = make_environment(venv)
    install(site, "mine-gnn", "1.0", "mine_gnn", MINE.format(times=1), ENTRY)
    return venv


@pytest.fixture(scope="module")
def new(tmp_path_factory):
    """A folder with version 2 of the package."""
    site = tmp_path_factory.mktemp("new") / "site"
    install(site, "mine-gnn", "2.0", "mine_gnn", MINE.format(times=2), ENTRY)
    return site


@pytest.fixture
def cli(new, said, monkeypatch):
    """The command line where version 2 is installed: (exit code, output, errors)."""

    def forget():
        registry.entries.cache_clear()
        registry.installed.cache_clear()
        sys.modules.pop("mine_gnn", None)

    paths = [str(new), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    monkeypatch.syspath_prepend(str(new))
    forget()
    yield said
    monkeypatch.undo()
    forget()


def test_two_versions_of_a_package_are_a_couple_with_pairs(old, cli, tmp_path):
    code, out, err = cli(*RUN, "--env", f"old={old}", "--json")
    assert code == 0, err
    printed = json.loads(out)
    here, there = printed["cells"]
    assert (here["system"], here["env"], there["system"], there["env"]) == (
        "mine", "", "mine", "old",
    )  # fmt: skip
    assert here["id"] != there["id"] and here["recipe"] == there["recipe"]
    assert "mine-gnn 2.0" in here["versions"] and "mine-gnn 1.0" in there["versions"]
    assert (there["reference"], there["reference_id"]) == ("mine", here["id"])
    assert (there["work_class"], there["verified"]) == ("identical", True)
    assert here["digest"] == there["digest"] != ""
    assert (there["pairs"], there["rounds"]) == (1, 2)
    assert here["verdict"] == "reference"
    (couple,) = printed["ratios"]
    assert (couple["first"], couple["second"]) == ("mine env=old", "mine")
    assert (couple["pairs"], couple["work_class"]) == (1, "identical")
    assert couple["ratio"] == pytest.approx(1 / there["ratio"])
    run = tmp_path / printed["run"]
    record = json.loads((run / "run.json").read_text())
    (environment,) = record["environments"].values()
    assert environment["executable"] == "python" and environment["native"] == ""
    assert environment["versions"]["mine-gnn"] == "1.0" != record["versions"]["mine-gnn"]
    assert environment["versions"]["dgl"] is None
    for table in (*run.glob("*.csv"), *run.glob("*.json*"), run / "definition.toml"):
        assert str(old.parent) not in table.read_text(), table.name
    with (run / "samples.csv").open() as file:
        orders = [(r["id"], r["order"]) for r in csv.DictReader(file) if r["warmup"] == "false"]
    assert {i for i, _ in orders} == {here["id"], there["id"]}
    assert [o for _, o in orders] == ["0", "1"] * 2


def test_a_run_goes_on_with_the_same_environments_alone(tmp_path):
    """Names must be given again; other versions are another run."""
    definition = experiment.resolve(experiment.load("sampling"), "smoke", None)
    record = {
        "definition_hash": definition.hash, "revision": {"source_digest": "s"}, "versions": {},
        "machine_id": "m",
    }  # fmt: skip

    def given(**versions):
        return record | {"environments": {n: {"versions": {"dgl": v}} for n, v in versions.items()}}

    def resumed(out, now, force=False):
        return folder.find_to_resume(tmp_path / out, definition, now, force)

    path = folder.create(tmp_path / "with", definition, given(old="1.1.2"))
    before = folder.create(tmp_path / "before", definition, record)
    assert resumed("with", given(old="1.1.2")) == path
    assert resumed("before", given()) == before  # of a day without environments
    for out, now, again in (
        ("with", given(), "--env old=PATH"), ("with", given(new="1.1.2"), "--env old=PATH"),
        ("before", given(old="1.1.2"), "no --env"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=f"go on with {again}"):
            resumed(out, now, force=True)
    for force in (False, True):  # times of two versions are never pooled
        with pytest.raises(UsageError, match="environment 'old' changed since"):
            resumed("with", given(old="1.1.3"), force)


def test_failed_cells_may_be_repaired_by_a_new_package(tmp_path):
    definition = experiment.resolve(experiment.load("sampling"), "smoke", None)
    record = {
        "definition_hash": definition.hash, "revision": {"source_digest": "s"}, "machine_id": "m",
        "environments": {}, "versions": {"torch": "2.13", "pyg-lib": None},
    }  # fmt: skip
    path = folder.create(tmp_path, definition, record)

    def resumed(versions, repairs):
        now = record | {"versions": record["versions"] | versions}
        return folder.find_to_resume(tmp_path, definition, now, False, repairs)

    new = {"pyg-lib": "0.8.0"}
    assert resumed(new, repairs=True) == path
    for versions, repairs in ((new, False), ({"torch": "2.14"}, True), ({"torch": None}, True)):
        with pytest.raises(UsageError, match="a package's version changed since"):
            resumed(versions, repairs)


def test_what_is_missing_in_one_environment_runs_in_the_other(old, cli, tmp_path):
    info = next(old.rglob("mine-gnn-1.0.dist-info"))
    entries = info / "entry_points.txt"
    entries.write_text(ENTRY.replace("[gnnbench.sa", "older = mine_gnn:RECIPE\n[gnnbench.sa"))
    try:
        code, out, err = cli(
            *RUN, "--systems", "older,dgl", "--env", f"old={old}", "--dry-run", "--json",
        )  # fmt: skip
    finally:
        entries.write_text(ENTRY)
    assert code == 0, err
    rows = {(r["system"], r["env"]): r for r in json.loads(out)["cells"]}
    assert rows["older", "old"]["status"] == "planned"
    assert rows["older", ""]["status"] == "missing_dep"
    assert "no package here brings the system 'older'" in rows["older", ""]["reason"]
    assert rows["dgl", "old"]["status"] == "missing_dep"
    assert "dgl is not installed" in rows["dgl", "old"]["reason"]


def test_a_worker_there_finds_no_package_of_this_environment(old, tmp_path):
    """What the suite needs here (pydantic, typer, psutil ...) is not needed and not seen there."""
    from gnnbench.core.cell import Cell
    from gnnbench.harness.interpreter import Environments, parse
    from gnnbench.harness.process import WorkerProcess

    others = Environments(parse([f"old={old}"]))
    cell = Cell("", "", "", "", env="old")
    with WorkerProcess(cell, tmp_path / "log", 60.0, environments=others) as worker:
        answer = worker.call("ask", about="describe", arguments={})["answer"]
    assert answer["native"] == ""
    assert {"baseline", "mine"} <= set(answer["systems"])
    seen = answer["versions"]
    assert seen["torch"] and seen["numpy"] and seen["mine-gnn"] == "1.0"
    assert seen["dgl"] is seen["torch-geometric"] is seen["scipy"] is None


@contextmanager
def at_start(venv, text):
    """Let an environment's Python do something whenever it starts."""
    site = next(venv.rglob("mine_gnn.py")).parent
    module, pth = site / "_at_start.py", site / "_at_start.pth"
    module.write_text(text)
    pth.write_text("import _at_start\n")
    try:
        yield
    finally:
        module.unlink()
        pth.unlink()


def test_an_editable_gnnbench_there_is_passed_over(old, tmp_path):
    """Even if it is imported already when the worker starts."""
    file = tmp_path / "foreign.py"
    file.write_text("FOREIGN = True\n")
    with (
        at_start(old, EDITABLE.format(file=str(file)) + "import gnnbench.harness.worker\n"),
        open_environments([f"old={old}"]) as found,
    ):
        assert {"baseline", "mine"} <= found.systems


def test_a_module_that_this_source_lacks_is_not_taken_from_there(old, tmp_path):
    file = tmp_path / "foreign.py"
    file.write_text("print('foreign')\n")
    text = bootstrap("gnnbench.pipelines.newer")
    with at_start(old, EDITABLE.format(file=str(file))):
        done = subprocess.run(
            [old / "bin" / "python", "-c", text, str(PACKAGE), "{}"],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert "No module named 'gnnbench.pipelines.newer'" in done.stderr and not done.stdout


def test_a_module_of_another_source_is_told(monkeypatch, tmp_path):
    module = ModuleType("gnnbench.newer")
    module.__file__ = str(tmp_path / "gnnbench" / "newer.py")
    # PyG writes modules of our layers into a temporary folder; a worker has none when it is asked.
    for name in [n for n in sys.modules if n.startswith("gnnbench.") and n.endswith("_propagate")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "gnnbench.newer", module)
    with pytest.raises(MissingError, match=r"'gnnbench\.newer' is of another gnnbench \(.*newer"):
        remote_answers.describe()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sys.stderr.write('no licence\\n\\n')", "with code 3, its last line 'no licence'; look"),
        ("pass", "with code 3 without a word; look"),
    ],
)
def test_a_worker_that_dies_while_the_plan_is_made_says_its_last_line(text, words, old):
    dies = f"import os, sys\nif 'gnnbench' in str(sys.orig_argv):\n    {text}\n    os._exit(3)\n"
    with (
        at_start(old, dies.replace("os._exit", "sys.stderr.flush(); os._exit")),
        pytest.raises(MissingError, match=f"^environment 'old': the worker ended.* {words}"),
        open_environments([f"old={old}"]),
    ):
        pass
