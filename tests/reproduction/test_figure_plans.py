"""Which run of a paper's figure this machine can execute."""

import csv
import io
import json

import pytest

from gnnbench.core.errors import MissingError
from gnnbench.harness import available
from gnnbench.harness.available import Availability
from gnnbench.harness.failures import Failure
from gnnbench.measure import machine
from gnnbench.reproduction import figure_plans
from gnnbench.reproduction.figure_plans import RunPlan, first_plan, plans, run_of, why_none
from gnnbench.reproduction.figures import figures, find

NO_GPU = "there is no GPU that CUDA can use"


@pytest.fixture(autouse=True)
def fresh():
    """Plans are cached; tests change what the machine has."""
    figure_plans._plan.cache_clear()
    yield
    figure_plans._plan.cache_clear()


@pytest.fixture
def planned(monkeypatch):
    """``planned(**plans)`` sets the plan of each profile; the others cannot run."""

    def apply(**known):
        def plan(run):
            reason, devices = known.get(run.profile, (NO_GPU, ()))
            return RunPlan(run, reason, 60.0, frozenset(devices))

        monkeypatch.setattr(figure_plans, "_plan", plan)

    yield apply
    monkeypatch.undo()


def test_first_run_that_can_be_executed_is_chosen(planned):
    planned(laptop=("", ["cpu"]), paper=("", ["cpu"]))
    assert run_of("fastgl/fig10b").profile == "laptop"
    assert run_of("fastgl/fig10b", "gpu").profile == "gpu"


def test_error_names_the_reason_where_none_can_be_executed(planned):
    planned()
    message = (
        f"'fastgl/fig15' cannot run here: {NO_GPU}; --profile with one of fastgl-fig15-published, "
    )
    with pytest.raises(MissingError, match=message):
        run_of("fastgl/fig15")


def test_only_run_is_refused_where_it_cannot_run(planned):
    planned()
    with pytest.raises(MissingError, match=r"'gnnlab/fig13' cannot run here"):
        run_of("gnnlab/fig13")
    assert run_of("gnnlab/fig13", "gnnlab-fig13").profile == "gnnlab-fig13"


def test_claims_about_gpus_are_not_measured_on_the_cpu(planned):
    figure = find("fastgl/fig1")
    planned(full=("", ["cpu"]))
    assert first_plan(figure) is None
    assert [p.reason for p in plans(figure) if p.run.profile == "full"] == [
        "no cell on cuda can run here"
    ]
    planned(full=("", ["cpu", "cuda"]))
    assert first_plan(figure).run.profile == "full"


def test_plan_has_devices_and_time():
    plan = next(plans(find("fastgl/table4")))
    assert (plan.run.profile, plan.reason) == ("smoke", "") and plan.devices <= {"cpu", "cuda"}
    assert plan.devices and plan.seconds > 1
    assert run_of("fastgl/table4") == plan.run


def test_plan_larger_than_the_memory_is_not_executed(monkeypatch):
    monkeypatch.setattr(machine, "memory_limit_bytes", lambda: 1e6)
    assert "iB of memory" in why_none(find("fastgl/table4"))
    assert first_plan(find("fastgl/table4")) is None


def test_most_frequent_failure_is_the_reason(monkeypatch):
    def state(cell):
        missing = "dgl is missing; install it" if cell.system == "dgl" else f"{NO_GPU}; get one"
        return Availability(Failure("missing_dep", missing))

    monkeypatch.setattr(available, "state", state)
    assert why_none(find("fastgl/fig9")) == NO_GPU


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("fastgl/eq3-4", "computed by 'gnnbench verdicts', without a run"),
        ("fastsample/abs3", "needs several machines; 'python -m gnnbench.contrib"),
        ("zero-copy/s3.1", "no run measures it"),
    ],
)
def test_figure_without_a_run_has_a_reason(name, reason):
    assert why_none(find(name)).startswith(reason)


def test_run_names_the_chosen_profile(said, planned):
    planned(smoke=("", ["cpu"]))
    code, out, err = said("run", "fastgl/fig10b", "--dry-run")
    assert code == 0 and "products~twin@0.01" in out
    assert "fastgl/fig10b is match-degree --profile smoke, the first that this machine can" in err
    for words in (("--quiet",), ("--profile", "smoke")):
        code, _, err = said("run", "fastgl/fig10b", "--dry-run", *words)
        assert (code, err) == (0, "")
    planned()
    code, out, err = said("run", "fastgl/fig10b", "--dry-run")
    assert (code, out) == (6, "") and NO_GPU in err


def test_list_figures_has_titles_times_and_reasons(said, planned):
    planned(smoke=("", ["cpu"]))
    code, out, _ = said("list", "figures")
    here, _, rest = out.partition("\n\n")
    assert code == 0 and max(map(len, out.splitlines())) <= 80
    (line,) = [x for x in here.splitlines() if x.startswith("fastgl/table4 ")]
    assert line.split()[1:4] == ["share", "of", "nodes"] and line.split()[-2:] == ["60", "s"]
    assert "fastgl/fig15" not in here and f"not run here: {NO_GPU}\n" in rest
    assert all(name in out for name in figures())


def test_list_figures_has_a_row_for_each_figure(said, planned):
    planned(smoke=("", ["cpu"]))
    code, out, _ = said("list", "figures", "--format", "json")
    rows = {row["figure"]: row for row in json.loads(out)["figures"]}
    assert code == 0 and list(rows) == list(figures()) and all(r["title"] for r in rows.values())
    assert (rows["fastgl/table4"]["time_s"], rows["fastgl/table4"]["profile"]) == (60.0, "smoke")
    assert (rows["fastgl/fig15"]["time_s"], rows["fastgl/fig15"]["missing"]) == (None, NO_GPU)
    code, out, _ = said("list", "figures", "--format", "csv")
    table = {row["figure"]: row for row in csv.DictReader(io.StringIO(out))}
    assert code == 0 and list(table) == list(rows) and table["fastgl/table4"]["time_s"] == "60.0"


def test_list_of_a_figure_has_the_time_of_each_profile(said, planned):
    planned(smoke=("", ["cpu"]))
    code, out, _ = said("list", "fastgl/fig10b")
    (line,) = [x for x in out.splitlines() if x.startswith("smoke ") and "60 s" in x]
    assert code == 0 and line.split() == ["smoke", "match-degree", "60", "s"]
    assert f"laptop, missing: {NO_GPU}" in out
