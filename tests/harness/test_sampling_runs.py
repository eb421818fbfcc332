"""Runs of cells that only sample: couples, looks into the samples, tables; on fakes."""

import json

import pytest
from fakes import by_system

from gnnbench.analysis.row_remarks import ratio_lines
from gnnbench.config.overrides import Overrides
from gnnbench.core.errors import UsageError
from gnnbench.harness import campaign
from gnnbench.harness.launch import make_request
from gnnbench.schema import reader

SPEED = ("sampling.speed=0.01", "sampling-twice.speed=0.01")


@pytest.fixture
def sample(fakes, tmp_path, observer):
    def run(text="", resume=False, **over):
        definition = tmp_path / "tries.toml"
        definition.write_text(
            'schema_version = 2\nreference = "fake"\nfigures = []\n' + text + "\n[axes]\n"
            'system = ["sampling", "sampling-twice"]\ndataset = ["products~twin@0.005"]\n'
            'until = ["sample"]\n[measure]\npairs = [3]\nrounds = 2\n'
            "unstable_half_width = 0.0\n"
        )
        request = make_request(str(definition), Overrides(**over), tmp_path / "results", resume)
        return campaign.run(request, observer)

    return run


def test_what_was_looked_into_is_in_tables_once_per_cell(sample):
    outcome = sample()
    run = reader.read(outcome.folder)
    assert [r["cell"] for r in run.stages] == [
        "sampling (unverified)", "sampling-twice (unverified)",
    ]  # fmt: skip
    assert run.stages[0]["hop"] is None and run.stages[0]["edges"] == 400
    assert not (outcome.folder / "kernels.csv").exists() and run.kernels == []
    events = [json.loads(line) for line in (outcome.folder / "events.jsonl").open()]
    looks = [n for n, e in enumerate(events) if e["event"] == "profile"]
    done = [n for n, e in enumerate(events) if e["event"] == "done"]
    assert len(looks) == 2 and max(looks) < min(done)  # a pair is done when it has been looked into


def test_several_looks_give_the_times_of_stages_an_interval(sample):
    run = reader.read(sample(options=("looks=3",)).folder)
    assert [(r["looks"], r["batches"], r["edges"]) for r in run.stages] == [(3, 20, 400)] * 2
    for row in run.stages:
        assert (row["host_s"], row["host_low_s"], row["host_high_s"]) == pytest.approx([1e-3] * 3)
        assert row["device_s"] is None and row["device_low_s"] is None


def test_a_look_that_fails_costs_no_measurement(sample):
    outcome = sample(options=("sampling.flag=x", "pairs=[1]"))
    row = by_system(outcome)["sampling"]
    assert row["status"] == "ok" and "blind" in row["remark"]
    assert [r["cell"] for r in reader.read(outcome.folder).stages] == [
        "sampling-twice (unverified)"
    ]


def test_rows_have_no_loss_and_couples_are_in_the_order_of_the_definition(sample):
    outcome = sample('compare = [["sampling-twice", "sampling"]]', options=SPEED)
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
    assert line.startswith("sampling-twice / sampling: ")
    assert "identical work, 3 pairs" in line


def test_a_couple_beside_the_reference_is_a_pair_of_its_own(sample):
    text = 'compare = [["sampling speed=0.01", "sampling-twice"]]'
    outcome = sample(text, systems=("fake", "sampling", "sampling-twice"),
                     options=("sampling.speed=0.01", "pairs=[1]"))  # fmt: skip
    (row,) = reader.read(outcome.folder).ratios
    assert (row["first"], row["work_class"]) == ("sampling speed=0.01", "identical")


def test_a_couple_with_a_wrong_cell_is_left_out(sample):
    text = 'compare = [["sampling", "sampling-twice"]]'
    outcome = sample(text, systems=("fake", "sampling", "sampling-twice"), models=("gcn",),
                     options=("until=compute", "pairs=[1]"))  # fmt: skip
    # A system that only samples has no loss: an epoch that should compute is incorrect.
    assert by_system(outcome)["sampling"]["status"] == "incorrect"
    assert reader.read(outcome.folder).ratios == []


def test_a_label_of_no_system_is_refused(sample):
    with pytest.raises(UsageError, match="unknown system 'smapling'"):
        sample('compare = [["smapling", "sampling"]]')
    with pytest.raises(UsageError, match="compare"):
        sample('compare = [["sampling"]]')
