"""Runs of sampling-only fakes: compared pairs, profiling runs and tables."""

import json

import pytest
from fakes import Quiet, by_system

from gnnbench.analysis.row_remarks import ratio_lines
from gnnbench.config.overrides import Overrides
from gnnbench.core.errors import UsageError
from gnnbench.harness import campaign
from gnnbench.harness.launch import make_request
from gnnbench.schema import reader

SPEED = ("sampling.speed=0.01", "sampling-twice.speed=0.01")


def sampler(folder):
    def run(text="", resume=False, **over):
        definition = folder / "tries.toml"
        definition.write_text(
            'schema_version = 2\nreference = "fake"\nfigures = []\n' + text + "\n[axes]\n"
            'system = ["sampling", "sampling-twice"]\ndataset = ["products~twin@0.005"]\n'
            'until = ["sample"]\n[measure]\npairs = [3]\nrounds = 2\n'
            "unstable_half_width = 0.0\n"
        )
        request = make_request(str(definition), Overrides(**over), folder / "results", resume)
        return campaign.run(request, Quiet())

    return run


@pytest.fixture
def sample(fakes, tmp_path):
    return sampler(tmp_path)


@pytest.fixture(scope="module")
def outcome(module_fakes, tmp_path_factory):
    """A run of three pairs, with three profiling runs of each cell."""
    run = sampler(tmp_path_factory.mktemp("sampling"))
    return run('compare = [["sampling-twice", "sampling"]]', options=(*SPEED, "looks=3"))


def test_profiled_stages_are_in_tables_once_per_cell(outcome):
    run = reader.read(outcome.folder)
    assert [r["cell"] for r in run.stages] == [
        "sampling (unverified)", "sampling-twice (unverified)",
    ]  # fmt: skip
    assert run.stages[0]["hop"] is None and run.stages[0]["edges"] == 400
    assert not (outcome.folder / "kernels.csv").exists() and run.kernels == []
    events = [json.loads(line) for line in (outcome.folder / "events.jsonl").open()]
    profiles = [n for n, e in enumerate(events) if e["event"] == "profile"]
    done = [n for n, e in enumerate(events) if e["event"] == "done"]
    assert len(profiles) == 2 and max(profiles) < min(done)  # a pair ends after its profiling run


def test_several_profiling_runs_give_stage_times_an_interval(outcome):
    run = reader.read(outcome.folder)
    assert [(r["looks"], r["batches"], r["edges"]) for r in run.stages] == [(3, 20, 400)] * 2
    for row in run.stages:
        assert (row["host_s"], row["host_low_s"], row["host_high_s"]) == pytest.approx([1e-3] * 3)
        assert row["device_s"] is None and row["device_low_s"] is None


def test_failed_profiling_run_keeps_the_measurement(sample):
    outcome = sample(options=("sampling.flag=x", "pairs=[1]"))
    row = by_system(outcome)["sampling"]
    assert row["status"] == "ok" and "blind" in row["remark"]
    assert [r["cell"] for r in reader.read(outcome.folder).stages] == [
        "sampling-twice (unverified)"
    ]


def test_sampling_rows_have_no_loss_and_ratios_follow_the_definition(outcome):
    row = by_system(outcome)["sampling"]
    assert (row["status"], row["loss"], row["hidden"]) == ("ok", None, None)
    assert row["memory_io_time_s"] is None and row["compute_time_s"] is None
    assert 0 < row["sample_time_s"] < row["epoch_wall_s"]
    assert by_system(outcome)["sampling-twice"]["ratio"] < 0.8
    (row,) = reader.read(outcome.folder).ratios
    assert (row["first"], row["second"]) == ("sampling-twice", "sampling")
    assert row["ratio"] > 1.25
    assert (row["pairs"], row["rounds"], row["work_class"]) == (3, 6, "identical")
    assert row["ratio_ci_low"] <= row["ratio"] <= row["ratio_ci_high"]
    assert row["device_ratio"] is None
    (line,) = ratio_lines([row])
    assert line.startswith("time of sampling-twice / sampling: ")
    assert "identical work, 3 pairs" in line


def test_compared_pair_without_the_reference_is_measured(sample):
    text = 'compare = [["sampling speed=0.01", "sampling-twice"]]'
    outcome = sample(text, systems=("fake", "sampling", "sampling-twice"),
                     options=("sampling.speed=0.01", "pairs=[1]"))  # fmt: skip
    (row,) = reader.read(outcome.folder).ratios
    assert (row["first"], row["work_class"]) == ("sampling speed=0.01", "identical")


def test_comparison_with_an_incorrect_cell_is_left_out(sample):
    text = 'compare = [["sampling", "sampling-twice"]]'
    outcome = sample(text, systems=("fake", "sampling", "sampling-twice"), models=("gcn",),
                     options=("until=compute", "pairs=[1]"))  # fmt: skip
    # A sampling-only system has no loss, so an epoch with a model is incorrect.
    assert by_system(outcome)["sampling"]["status"] == "incorrect"
    assert reader.read(outcome.folder).ratios == []


def test_unknown_label_in_compare_is_refused(sample):
    with pytest.raises(UsageError, match="unknown system 'smapling'"):
        sample('compare = [["smapling", "sampling"]]')
    with pytest.raises(UsageError, match="compare"):
        sample('compare = [["sampling"]]')
