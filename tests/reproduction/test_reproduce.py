"""Planning, running and resuming the runs of claims, and a small run up to its page."""

import json
from dataclasses import replace

import pytest
from written_runs import claim

from gnnbench.analysis.plots import draw
from gnnbench.core.errors import UsageError
from gnnbench.harness import available
from gnnbench.harness.available import Availability
from gnnbench.harness.failures import Failure
from gnnbench.measure import machine
from gnnbench.reproduction import claim as claims
from gnnbench.reproduction import page, reproduce
from gnnbench.reproduction.claim import choose, sizes
from gnnbench.reproduction.evidence import open_runs
from gnnbench.reproduction.judge import judge
from gnnbench.reproduction.reproduce import CANNOT, FINISHED, RESUME, RUN, execute, plan

TINY = """
schema_version = 2
extends = "bandwidth"
name = "bandwidth"
[profiles.tiny]
axes."baseline.features" = ["host"]
axes.dataset = ["rows@1kx120"]
axes.batch_size = [128]
measure = { pairs = [1], rounds = 2, unstable_half_width = 0.0 }
"""


class Silent:
    """An observer that records notes."""

    def __init__(self):
        self.notes = []

    def note(self, text):
        self.notes.append(text)

    def plan(self, pairs, budget_s):
        pass

    def step(self, text, fraction):
        pass

    def pair_done(self):
        pass


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A claim, and the plan of its one run on a table of 1000 rows."""
    monkeypatch.setenv("GNNBENCH_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(machine, "source_digest", lambda native=True: "0123456789abcdef")
    definition = tmp_path / "tiny.toml"
    definition.write_text(TINY)
    run = f"{definition} tiny"
    monkeypatch.setattr(reproduce, "sizes", lambda: {"tiny": [run]})
    statement = claim(
        measure="requests_ratio", of="baseline", number=None, least=1.001, tolerance=None,
        kind="order", unit="x", runs=[run, "bandwidth requests"],
    )  # fmt: skip
    return statement, lambda: plan("tiny", [statement], tmp_path / "out")


def test_run_goes_from_plan_to_page_and_is_not_repeated(tiny, tmp_path):
    statement, planned = tiny
    (step,) = planned()
    assert (step.state, step.is_pending, step.claims) == (RUN, True, (statement.id,))
    assert step.seconds > 0 and step.folder is None
    observer = Silent()
    (done,) = execute([step], observer, draw)
    assert done.exit_code == 0 and any("tiny" in note for note in observer.notes)
    (again,) = planned()
    assert (again.state, again.is_pending, again.seconds) == (FINISHED, False, 0.0)
    assert again == replace(done, request=again.request)
    assert execute([again], observer, draw) == [again]
    out = tmp_path / "out"
    (judged,) = judge([statement], open_runs([out]))
    assert judged.verdict == "holds"
    # Rows of 480 bytes: the address model gives a ratio between 7.1 / 5.3 and 8 / 5.
    assert 1.2 < judged.findings[0].estimate.value < 1.6
    text = page.html(out, "tiny", [judged], [done])
    assert "finished" in text and statement.id in text and "data:image/svg+xml" in text

    record = json.loads((done.folder / "run.json").read_text())
    (done.folder / "run.json").write_text(json.dumps({**record, "finished": False}))
    (interrupted,) = planned()
    assert (interrupted.state, interrupted.request.resume, interrupted.folder) == (
        RESUME,
        True,
        done.folder,
    )
    (done,) = execute([interrupted], observer, draw)
    assert done.folder == interrupted.folder and planned()[0].state == FINISHED


def test_failed_cells_are_reported_until_they_are_measured_again(tiny, said, tmp_path, monkeypatch):
    """Each report names the command that measures them again."""
    statement, planned = tiny
    (done,) = execute(planned(), Silent(), draw)
    rows = (done.folder / "cells.csv").read_text()
    (done.folder / "cells.csv").write_text(rows.replace(",ok,", ",unstable,"))
    (step,) = planned()
    assert (step.state, step.is_pending, step.exit_code) == (FINISHED, False, 3)
    assert (step.failed, step.reason) == ({"unstable": 1}, "1 unstable of 1 cell")
    assert step.retry_command.endswith(f" --profile tiny --only-failed --out {tmp_path / 'out'}")
    monkeypatch.setattr(claims, "choose", lambda names: [statement])
    code, out, _ = said("reproduce", "--profile", "tiny", "--out", str(tmp_path / "out"))
    assert code == 3 and f"\n  {step.retry_command}\n" in out
    assert "1 unstable of 1 cell; " in " ".join(out.split())  # lines wrap depending on the path
    (done.folder / "cells.csv").write_text(rows.replace(",ok,", ",missing_data,"))
    assert planned()[0].reason == "1 missing_data of 1 cell"


def test_results_of_other_code_are_run_again(tiny, tmp_path, monkeypatch):
    _, planned = tiny
    execute(planned(), Silent(), draw)
    monkeypatch.setattr(machine, "source_digest", lambda native=True: "fedcba9876543210")
    assert planned()[0].state == RUN


def test_run_without_a_runnable_cell_gives_the_reason(tiny, monkeypatch):
    _, planned = tiny
    unavailable = Availability(
        Failure("missing_dep", "there is no GPU; take a machine that has one")
    )
    monkeypatch.setattr(available, "state", lambda cell: unavailable)
    (step,) = planned()
    assert (step.state, step.is_pending, step.seconds) == (CANNOT, False, 0.0)
    assert step.reason == "there is no GPU; take a machine that has one"
    assert execute([step], Silent(), draw) == [step]


def test_plan_of_a_claim_has_its_runs(tmp_path):
    steps = plan("smoke", choose(["zero-copy/fig5"]), tmp_path)
    assert [s.run for s in steps] == ["bandwidth requests", "bandwidth smoke"]
    assert steps[0].claims == ("zero-copy/fig5.a3", "zero-copy/fig5.a5")
    assert list(tmp_path.iterdir()) == []


def test_plans_stay_within_their_time(tmp_path):
    for size, hours in (("smoke", 0.25), ("laptop", 2.0)):
        steps = plan(size, choose(), tmp_path)
        assert [s.run for s in steps] == sizes()[size]
        assert 0 < sum(s.seconds for s in steps) < hours * 3600


def test_unknown_profile_or_unplanned_claim_is_an_error(tmp_path):
    with pytest.raises(UsageError, match="unknown profile 'smok'; did you mean 'smoke'"):
        plan("smok", choose(), tmp_path)
    with pytest.raises(UsageError, match=r"smoke' measures these claims; sampling fastgl-fig13, s"):
        plan("smoke", choose(["fastgl/fig13.a1"]), tmp_path)
    with pytest.raises(UsageError, match="nor does any other"):
        plan("smoke", choose(["gnnlab/table4.a8"]), tmp_path)
