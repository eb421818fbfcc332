"""Plug-ins are imported by a helper process, never by the runner."""

import os
import subprocess
import sys
import textwrap

import pytest

from gnnbench.config.overrides import Overrides
from gnnbench.core import registry
from gnnbench.core.errors import MissingError, SettingError
from gnnbench.harness import environment
from gnnbench.harness.launch import make_request

PLUGIN = """
    import os
    from pathlib import Path
    Path(__file__).with_name("pids").open("a").write(f"{os.getpid()}\\n")
    os.environ["GNNBENCH_TEST_PLANTED"] = "1"
    from gnnbench.sampling.hop_by_hop import HopByHop
    from gnnbench.sampling.native import spec_of
    from gnnbench.systems.runtime.recipe import Recipe
    class Mine(HopByHop):
        name = "mine"
    OWN = Recipe("own", "a plug-in", spec_of("mine", Mine)())
"""


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """Registers a module as the system 'own' and the sampler 'mine'; returns its file."""
    path = tmp_path / "planted_plugin.py"
    path.write_text(textwrap.dedent(PLUGIN))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("GNNBENCH_EXTRA_SYSTEMS", "own=planted_plugin:OWN")
    monkeypatch.setenv("GNNBENCH_EXTRA_SAMPLERS", "mine=planted_plugin:Mine")
    registry.entries.cache_clear()
    yield path
    registry.entries.cache_clear()


def request_for(tmp_path, systems, *options):
    over = Overrides(
        profile="smoke", systems=systems, datasets=("products~twin@0.001",), options=options
    )
    return make_request("sampling", over, tmp_path)


def importers(plugin):
    return {int(pid) for pid in plugin.with_name("pids").read_text().split()}


@pytest.mark.parametrize(
    ("systems", "options"),
    [(("baseline", "own"), ()), (("baseline",), ("baseline.sampler=mine",))],
)
def test_a_plan_with_plugins_imports_them_in_another_process(plugin, tmp_path, systems, options):
    plan = request_for(tmp_path, systems, *options).plan
    planned = [cell for cell in plan.cells if cell.stage("sampler")["name"] == "mine"]
    assert planned and not plan.failures
    assert len(importers(plugin)) == 1
    assert environment.facts("own").methods["cpu"][0] == "floyd"
    assert os.getpid() not in importers(plugin)
    assert "planted_plugin" not in sys.modules and "GNNBENCH_TEST_PLANTED" not in os.environ


def test_the_process_ends_with_the_plan_and_its_answers_are_kept(plugin, tmp_path):
    cell = request_for(tmp_path, ("own",)).plan.cells[0]
    (pid,) = importers(plugin)
    assert subprocess.run(["ps", "-p", str(pid)], capture_output=True).returncode == 1
    assert environment.facts("own").composed and environment.state(cell).failure is None
    assert importers(plugin) == {pid}


def test_another_registration_is_inspected_anew(plugin, tmp_path, monkeypatch):
    request_for(tmp_path, ("own",))
    monkeypatch.setenv("GNNBENCH_TEST_OTHER", "1")
    request_for(tmp_path, ("own",))
    assert len(importers(plugin)) == 2


def test_errors_of_a_setting_name_it_as_those_of_built_in_systems_do(plugin, tmp_path):
    with pytest.raises(SettingError, match="int7") as raised:
        request_for(tmp_path, ("own",), "own.dtype=int7")
    with pytest.raises(SettingError, match="int7") as builtin:
        request_for(tmp_path, ("baseline",), "baseline.dtype=int7")
    assert raised.value.key.replace("own", "baseline") == builtin.value.key


def test_a_plugin_that_does_not_import_is_a_row(plugin, tmp_path):
    plugin.write_text("import nowhere_at_all\n")
    plan = request_for(tmp_path, ("baseline", "own")).plan
    (failure,) = set(plan.failures.values())
    assert failure.status == "missing_dep" and "nowhere_at_all" in failure.reason


def test_a_plugin_that_ends_the_process_is_named(plugin, tmp_path):
    plugin.write_text("import os, sys\nprint('bye', file=sys.stderr, flush=True)\nos._exit(3)\n")
    with pytest.raises(MissingError, match=r"code 3, its last line 'bye'; mend .*: mine, own"):
        request_for(tmp_path, ("own",))
