"""What is planned, run, gone on with and left out; a small run from the plan to the page."""

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
    """An observer that remembers notes."""

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
    """A plan of one run of a table of 1000 rows, and the claim that it serves."""
    monkeypatch.setenv("GNNBENCH_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(machine, "source_digest", lambda native=True: "0123456789abcdef")
    definition = tmp_path / "tiny.toml"
    definition.write_text(TINY)
    run = f"{definition} tiny"
    monkeypatch.setattr(reproduce, "sizes", lambda: {"tiny": [run]})
    asked = claim(
        measure="requests_ratio", of="baseline", number=None, least=1.001, tolerance=None,
        kind="order", unit="x", runs=[run, "bandwidth requests"],
    )  # fmt: skip
    return asked, lambda: plan("tiny", [asked], tmp_path / "out")


def test_a_run_leads_from_the_plan_to_the_page_and_is_not_run_twice(tiny, tmp_path):
    asked, planned = tiny
    (step,) = planned()
    assert (step.state, step.is_pending, step.claims) == (RUN, True, (asked.id,))
    assert step.seconds > 0 and step.folder is None
    seen = Silent()
    (done,) = execute([step], seen, draw)
    assert done.exit_code == 0 and any("tiny" in note for note in seen.notes)
    (again,) = planned()
    assert (again.state, again.is_pending, again.seconds) == (FINISHED, False, 0.0)
    assert again == replace(done, request=again.request)
    assert execute([again], seen, draw) == [again]
    out = tmp_path / "out"
    (found,) = judge([asked], open_runs([out]))
    assert found.verdict == "holds"
    # Rows of 480 bytes: by the address model between 8 for 5 and 7.1 for 5.3.
    assert 1.2 < found.findings[0].estimate.value < 1.6
    text = page.write(out, "tiny", [found], [done]).read_text()
    assert "finished" in text and asked.id in text and "data:image/svg+xml" in text

    record = json.loads((done.folder / "run.json").read_text())
    (done.folder / "run.json").write_text(json.dumps({**record, "finished": False}))
    (half,) = planned()
    assert (half.state, half.request.resume, half.folder) == (RESUME, True, done.folder)
    (done,) = execute([half], seen, draw)
    assert done.folder == half.folder and planned()[0].state == FINISHED


def test_cells_that_failed_are_told_as_long_as_they_stand(tiny, said, tmp_path, monkeypatch):
    """When they are run and ever after, with the command that measures them again."""
    asked, planned = tiny
    (done,) = execute(planned(), Silent(), draw)
    rows = (done.folder / "cells.csv").read_text()
    (done.folder / "cells.csv").write_text(rows.replace(",ok,", ",unstable,"))
    (step,) = planned()
    assert (step.state, step.is_pending, step.exit_code) == (FINISHED, False, 3)
    assert (step.failed, step.reason) == ({"unstable": 1}, "1 unstable of 1 cell")
    assert step.retry_command.endswith(f" --profile tiny --only-failed --out {tmp_path / 'out'}")
    monkeypatch.setattr(claims, "choose", lambda names: [asked])
    code, out, _ = said("reproduce", "--profile", "tiny", "--out", str(tmp_path / "out"))
    assert code == 3 and f"\n  {step.retry_command}\n" in out
    assert "1 unstable of 1 cell; " in " ".join(out.split())  # where it wraps, paths decide
    (done.folder / "cells.csv").write_text(rows.replace(",ok,", ",missing_data,"))
    assert planned()[0].reason == "1 missing_data of 1 cell"


def test_of_other_code_everything_is_run_again(tiny, tmp_path, monkeypatch):
    _, planned = tiny
    execute(planned(), Silent(), draw)
    monkeypatch.setattr(machine, "source_digest", lambda native=True: "fedcba9876543210")
    assert planned()[0].state == RUN


def test_what_nothing_here_can_run_says_why(tiny, monkeypatch):
    _, planned = tiny
    gone = Availability(Failure("missing_dep", "there is no GPU; take a machine that has one"))
    monkeypatch.setattr(available, "state", lambda cell: gone)
    (step,) = planned()
    assert (step.state, step.is_pending, step.seconds) == (CANNOT, False, 0.0)
    assert step.reason == "there is no GPU; take a machine that has one"
    assert execute([step], Silent(), draw) == [step]


def test_the_plan_of_a_claim_has_the_runs_that_serve_it(tmp_path):
    steps = plan("smoke", choose(["zero-copy/fig5"]), tmp_path)
    assert [s.run for s in steps] == ["bandwidth requests", "bandwidth smoke"]
    assert steps[0].claims == ("zero-copy/fig5.a3", "zero-copy/fig5.a4", "zero-copy/fig5.a5")
    assert list(tmp_path.iterdir()) == []


def test_the_plans_keep_to_their_times(tmp_path):
    for size, hours in (("smoke", 0.25), ("laptop", 2.0)):
        steps = plan(size, choose(), tmp_path)
        assert [s.run for s in steps] == sizes()[size]
        assert 0 < sum(s.seconds for s in steps) < hours * 3600


def test_a_plan_that_cannot_be_is_an_error(tmp_path):
    with pytest.raises(UsageError, match="unknown profile 'smok'; did you mean 'smoke'"):
        plan("smok", choose(), tmp_path)
    with pytest.raises(UsageError, match=r"smoke' measures these claims; sampling fastgl-fig13, s"):
        plan("smoke", choose(["fastgl/fig13.a1"]), tmp_path)
    with pytest.raises(UsageError, match="nor does any other"):
        plan("smoke", choose(["gnnlab/table4.a8"]), tmp_path)
