"""``gnnbench list`` of one kind, and what ``--quiet`` still tells."""

import pytest
from typer.testing import CliRunner

from gnnbench.cli import app
from gnnbench.results.table import reasons, remarks


@pytest.mark.parametrize("kind", ["systems", "models"])
def test_one_kind_is_listed_alone(kind):
    out = CliRunner().invoke(app, ["list", kind])
    assert out.exit_code == 0, out.output
    assert kind in out.output.splitlines()[0]
    assert ("baseline" in out.output) is (kind == "systems")
    assert ("graphsage" in out.output) is (kind == "models")


def test_reasons_are_the_first_of_the_remarks():
    rows = [
        {"id": "1", "system": "a", "status": "oom_host", "reason": "no room", "doubtful": ""},
        {"id": "2", "system": "b", "status": "ok", "reason": "", "doubtful": "others ran"},
    ]
    shaken = "others ran; measured once more it was so again"
    rows.append(
        {"id": "3", "system": "c", "status": "unstable", "reason": shaken, "doubtful": "others ran"}
    )
    told = reasons(rows)
    assert told == [
        "a: oom_host: no room", f"c: unstable: {shaken}", "(?) b: others ran",
    ]  # fmt: skip
    assert remarks(rows)[:3] == told
