"""The default reference if its package is not installed, and ``--systems all``."""

import pytest

from gnnbench.config import experiment as definitions
from gnnbench.config.overrides import Overrides, spelled
from gnnbench.core import registry
from gnnbench.harness import available, launch
from gnnbench.harness.available import Availability
from gnnbench.harness.failures import Failure


@pytest.fixture
def quick():
    return definitions.resolve(definitions.load("breakdown"), "quick", {})


@pytest.fixture
def without_dgl(monkeypatch):
    real = available.availability

    def availability(name, *setting):
        if name == "dgl":
            return Availability(Failure("missing_dep", "dgl is not installed; pip install dgl"))
        return real(name, *setting)

    monkeypatch.setattr(available, "availability", availability)


def test_baseline_replaces_a_missing_reference(quick, without_dgl):
    changed, note = launch._with_installed_reference(quick)
    assert (changed.reference, set(changed.references.values())) == ("baseline", {"baseline"})
    assert note == "dgl is not installed, so baseline is the reference"


def test_installed_reference_is_kept(quick, monkeypatch):
    monkeypatch.setattr(available, "availability", lambda *setting: Availability())
    assert launch._with_installed_reference(quick) == (quick, "")


def test_reference_chosen_by_the_user_is_kept(quick, without_dgl, tmp_path):
    given = Overrides(profile="quick", systems=("baseline",), options=("reference=dgl",))
    assert launch.make_request("breakdown", given, tmp_path).experiment.reference == "dgl"
    unset = Overrides(profile="quick", systems=("baseline",))
    request = launch.make_request("breakdown", unset, tmp_path)
    assert request.experiment.reference == "baseline"
    assert "dgl is not installed, so baseline is the reference" in request.plan.notes


@pytest.mark.parametrize("name", ["all", "ALL"])
def test_systems_all_selects_every_system_and_names_none(quick, name, tmp_path):
    known = registry.known(registry.SYSTEM)
    over = spelled(Overrides(systems=(name,)), quick, known)
    assert over.systems == tuple(known) and over.every_system
    request = launch.make_request("breakdown", Overrides(systems=(name,)), tmp_path)
    assert request.named_systems == frozenset()


def test_default_profile_compares_papers_and_frameworks(quick):
    papers = {"fastgl", "gnnlab", "pgsampler", "zero-copy", "fastsample"}
    assert {*papers, "baseline", "dgl", "pyg", "best"} == set(quick.axis("system"))
    assert definitions.load("breakdown").default_profile == "quick"
