"""Retrainings of the reference that measure its spread."""

import json
from dataclasses import replace

import pytest
import torch
from compose import make
from fakes import Quiet

from gnnbench.core.cell import Cell
from gnnbench.harness.journal import RunJournal
from gnnbench.harness.training_check import RETRAININGS
from gnnbench.schema.events import read_journal


def test_jitter_changes_weights_by_rounding_only(small_graph):
    plain, other, again = (
        make(small_graph, jitter=jitter).trainer.model.state_dict() for jitter in (0, 1, 1)
    )
    for name, weights in plain.items():
        assert torch.equal(other[name], again[name])
        assert torch.allclose(weights, other[name], rtol=1e-6, atol=0)
    assert any(not torch.equal(plain[name], other[name]) for name in plain)


def test_zero_jitter_does_not_change_the_cell_id():
    cell = Cell("e", "baseline", "g", "gcn")
    assert replace(cell, jitter=0).id == cell.id != replace(cell, jitter=1).id


def test_journal_collects_the_trainings_of_a_cell(tmp_path):
    """It has finished and void trials and retrainings, and each list of epochs once."""

    def epoch(number, **more):
        return {"epoch": number, "loss": 1.0, **more}

    cell = Cell("e", "baseline", "g", "gcn")
    samples = [
        epoch(10 * trial + nth, id=cell.id, pair="p", life=trial)
        for trial in (0, 1)
        for nth in (0, 1)
    ]
    events = [
        {"event": "life", "pair": "p", "life": 0, "void": True, "excess": "loss+"},
        {"event": "retrained", "cell": cell.id,
         "trainings": [[epoch(5), epoch(6)], [epoch(7)], [epoch(0), epoch(1)]]},
    ]  # fmt: skip
    for name, records in (("samples", samples), ("events", events)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    journal = RunJournal(tmp_path)
    trainings = journal.trainings(cell, 2)
    assert [[r["epoch"] for r in training] for training in trainings] == [[0, 1], [5, 6]]
    assert [[r["epoch"] for r in t] for t in journal.trainings(cell, 1)] == [[0], [5], [7]]
    journal.close()


@pytest.fixture
def intolerant(monkeypatch):
    """Sets the fixed tolerances to zero."""
    from gnnbench.harness import training_check

    strict = training_check.Tolerance(loss=0.0, step=0.0, layer=0.0, norm=0.0)
    for name in ("EQUIVALENT", "IDENTICAL", "IDENTICAL_FIRST"):
        monkeypatch.setattr(training_check, name, strict)


@pytest.mark.parametrize("system,work", [("dgl", "equivalent"), ("gnnadvisor", "identical")])
def test_reference_is_retrained_and_a_correct_system_passes(
    system, work, intolerant, monkeypatch, tmp_path
):
    from gnnbench.config.overrides import Overrides
    from gnnbench.harness import campaign
    from gnnbench.harness.launch import make_request
    from gnnbench.measure import machine

    monkeypatch.setattr(machine, "busy_seconds", lambda: 0.0)  # ignore other programs
    options = ("reference=baseline", "rounds=2", "fanouts=[3, 2]", "hidden=8", "threads=1")
    wanted = Overrides("smoke", ("baseline", system), options=options, repeats=1)
    outcome = campaign.run(make_request("breakdown", wanted, tmp_path), Quiet())
    rows = {r["system"]: r for r in outcome.rows}
    if rows[system]["status"] == "missing_dep":
        pytest.skip(rows[system]["reason"])
    assert [(r["status"], r["reason"]) for r in rows.values()] == [("ok", "")] * 2
    assert rows[system]["work_class"] == work
    (events,) = tmp_path.glob("*/*/events.jsonl")
    retrained = [e for e in read_journal(events, dict) if e["event"] == "retrained"]
    if work == "equivalent":  # retrained once for all comparisons of the run
        assert [len(e["trainings"]) for e in retrained] == [RETRAININGS]
    else:  # the trial itself has the same epochs
        assert retrained == []
