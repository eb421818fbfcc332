"""Names of papers' figures: the run that measures a figure, or an error."""

from functools import cache

import pytest

from gnnbench.config import experiment
from gnnbench.core.errors import UsageError
from gnnbench.reproduction.claim import choose
from gnnbench.reproduction.figure_plans import run_of
from gnnbench.reproduction.figures import figures, find, is_one

profiles_of = cache(lambda name: set(experiment.load(name).profiles))


def test_every_figure_with_a_run_is_found_by_name():
    assert {c.entry for c in choose()} == set(figures())
    for figure in figures().values():
        for profile, run in figure.profiles.items():
            assert run.profile in profiles_of(run.experiment)
            assert run_of(figure.name, profile) == run
    assert sum(bool(f.runs) for f in figures().values()) > 50


def test_profile_selects_one_of_several_runs():
    assert run_of("fastgl/table8", "fastgl-table8-published").experiment == "sampling"


@pytest.mark.parametrize(
    ("name", "other"), [("gnnlab/fig14b", "gnnlab/fig14a"), ("fastsample/fig2", "fastsample/fig1")]
)
def test_figure_covered_by_another_is_found(name, other):
    assert name not in figures() and find(name) == figures()[other]


def test_profiles_of_equal_name_are_prefixed_by_their_experiment():
    both = figures()["zero-copy/fig10"].profiles
    assert both["bandwidth-gpu-fig10-mps"].experiment == "bandwidth"
    assert both["schedules-gpu-fig10-mps"].profile == "gpu-fig10-mps"


@pytest.mark.parametrize(
    ("name", "profile", "message"),
    [
        ("fastgl/tabel8", "", "unknown figure 'fastgl/tabel8'; did you mean 'fastgl/table8'"),
        ("fastgl/table8", "fastgl-tabel8", "did you mean 'fastgl-table8-published'"),
        ("fastgl/eq3-4", "", "'gnnbench verdicts --paper fastgl/eq3-4' says why"),
        (
            "fastsample/abs3",
            "",
            "'python -m gnnbench.contrib.emulated_network compare' measures it",
        ),
    ],
)
def test_figure_without_a_single_run_is_a_usage_error(name, profile, message):
    with pytest.raises(UsageError, match=message) as error:
        run_of(name, profile)
    assert "\n" not in str(error.value)


def test_files_and_other_names_are_no_figures(tmp_path, monkeypatch):
    assert is_one("gnnlab/fig11b") and is_one("gnnlab/nothing")
    for other in ("breakdown", "mine.toml", "gnnlab/mine.toml", "here/fig1", "gnnlab/"):
        assert not is_one(other)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gnnlab").mkdir()
    (tmp_path / "gnnlab" / "fig11b").write_text("")
    assert not is_one("gnnlab/fig11b")


def test_run_and_list_take_figures(said):
    code, out, _ = said("run", "fastgl/fig10b", "--profile", "smoke", "--dry-run")
    assert code == 0 and "products~twin@0.01" in out
    code, out, _ = said("run", "fastgl/table8", "--help")
    assert code == 0 and "Profiles of fastgl/table8" in out
    code, _, err = said("list", "figures", "--profile", "x")
    assert code == 2 and "belongs to an experiment" in err


@pytest.mark.parametrize("name", ["fastgl", "best"])
def test_run_of_a_system_suggests_a_command(said, name):
    code, _, err = said("run", name)
    assert code == 2 and f"'gnnbench run breakdown --systems {name}' runs it" in err
    assert ("'gnnbench list figures'" in err) == (name == "fastgl")
