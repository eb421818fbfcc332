"""``gnnbench list`` of one kind, and the remarks that ``--quiet`` keeps."""

import json

import pytest
from typer.testing import CliRunner

from gnnbench.analysis.row_remarks import reasons, remarks
from gnnbench.cli import app
from gnnbench.core.errors import UsageError


@pytest.mark.parametrize("kind", ["systems", "models"])
def test_one_kind_is_listed_alone(kind):
    out = CliRunner().invoke(app, ["list", kind])
    assert out.exit_code == 0, out.output
    assert kind in out.output.splitlines()[0]
    assert ("baseline" in out.output) is (kind == "systems")
    assert ("graphsage" in out.output) is (kind == "models")


@pytest.mark.parametrize(("typed", "known"), [("Models", "models"), ("GNNLab", "gnnlab")])
def test_kinds_and_systems_are_listed_in_any_case(typed, known):
    outputs = [CliRunner().invoke(app, ["list", name]) for name in (typed, known)]
    assert [out.exit_code for out in outputs] == [0, 0]
    assert outputs[0].output == outputs[1].output


def test_settings_of_a_system_fit_80_columns():
    out = CliRunner().invoke(app, ["list", "baseline"])
    assert out.exit_code == 0, out.output
    lines = out.output.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("baseline: ") and "settings: -o baseline.SETTING=VALUE" in lines
    at = lines.index("sampler.frontier (default: default)")
    assert lines[at + 1].startswith("  ") and "values: " in "".join(lines[at + 1 : at + 5])
    assert "anything" not in out.output
    assert (
        "  values: default or cumulative" in lines
        or "  values: default, cumulative or new" in lines
    )
    assert "sampler (default: hop-by-hop)" in lines and "dtype (default: float32)" in lines
    system = json.loads(CliRunner().invoke(app, ["list", "baseline", "--json"]).output)
    paths = [line.split(" (default")[0] for line in lines if " (default: " in line]
    assert paths == list(system["settings"]) and "schedule.step" in paths


def test_unknown_name_suggests_an_experiment_or_a_system():
    with pytest.raises(UsageError, match="experiment or system 'basline'; did you mean 'baselin"):
        CliRunner().invoke(app, ["list", "basline"], catch_exceptions=False)
    with pytest.raises(UsageError, match="--profile belongs to an experiment"):
        CliRunner().invoke(app, ["list", "dgl", "--profile", "x"], catch_exceptions=False)


def test_definition_in_the_folder_has_precedence_over_a_system(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = 'schema_version = 2\nextends = "breakdown"\ntitle = "Mine"\n'
    (tmp_path / "baseline.toml").write_text(text)
    assert CliRunner().invoke(app, ["list", "baseline"]).output.startswith("baseline: Mine\n")


def test_remarks_begin_with_the_reasons():
    rows = [
        {"id": "1", "system": "a", "status": "oom_host", "reason": "no room", "doubtful": ""},
        {"id": "2", "system": "b", "status": "ok", "reason": "", "doubtful": "others ran"},
    ]
    reason = "others ran; measured once more it was so again"
    rows.append(
        {"id": "3", "system": "c", "status": "unstable", "reason": reason, "doubtful": "others ran"}
    )
    lines = reasons(rows)
    assert lines == [
        "a: oom_host: no room", f"c: unstable: {reason}", "(?) b: others ran",
    ]  # fmt: skip
    assert remarks(rows)[:3] == lines
