"""Held-out graphs: the experiment measures every choice, and the judge is strict."""

import json
from types import SimpleNamespace

import pytest
from hand_made import CACHED, FACTS

from gnnbench.config import experiment
from gnnbench.config.overrides import Overrides
from gnnbench.contrib.advisor import held_out
from gnnbench.contrib.advisor.held_out import judge, lines, main, passed
from gnnbench.contrib.advisor.model import choices
from gnnbench.core.cell import Until, flat
from gnnbench.core.errors import UsageError
from gnnbench.harness.launch import make_request
from gnnbench.systems.runtime.find import find

BEST = find("best")


@pytest.mark.parametrize(("profile", "facts"), [("cpu", FACTS), ("gpu", CACHED)])
def test_experiment_has_the_cells_of_all_choices(profile, facts, tmp_path):
    resolved = experiment.resolve(experiment.load("advise"), profile)
    plan = make_request("advise", Overrides(profile=profile), tmp_path).plan
    reasons = {f.reason for f in plan.failures.values() if f.status != "missing_dep"}
    assert not reasons, reasons
    cells = plan.cells
    device = resolved.axis("device")[0]
    expected = [
        flat(BEST.resolved(c.settings(0.1, device), device, Until.COMPUTE).recipe)
        for c in choices(facts, device)
    ]
    graphs = resolved.axis("dataset")
    assert len(graphs) == 5 and not any("products" in name or "@21" in name for name in graphs)
    for name in graphs:
        recipes = [flat(c.recipe) for c in cells if c.dataset == name]
        assert len(recipes) == len(expected) == 24
        assert all(one in recipes for one in expected)


def test_settings_are_those_of_the_experiment():
    settings = held_out.settings("cpu")
    assert len(settings) == 5 and {s.device for s in settings} == {"cpu"}
    assert {(s.model, s.hidden, s.batch_size, s.fanouts) for s in settings} == {
        ("gcn", 64, 1024, (15, 10, 5))
    }


SETTING = {
    "model": "gcn", "hidden": 64, "batch_size": 1024, "fanouts": [15, 10, 5], "device": "cpu",
    "threads": 0, "seed": 0,
}  # fmt: skip


def choice(sampler, **more):
    settings = {"sampler": sampler, "features": "host", "order": "as-drawn", **more}
    return {"settings": settings, "batch_s": 0.1, "first_s": 0.2}


def row(dataset, sampler, over, status="ok", features="host", ref="b", **more):
    """A choice that takes ``over`` times as long as the reference, whose sampler is ``ref``.

    Seconds of ``b`` are ten times larger, as on a slower machine: only ratios may count."""
    recipe = {"sampler": {"name": sampler}, "features": {"name": features, **more}}
    recipe["order"] = {"name": "as-drawn"}
    return {
        **SETTING, "fanouts": "15/10/5", "threads": 2, "doubtful": "",
        "dataset": dataset, "status": status, "batches": 8, "recipe": json.dumps(recipe),
        "judged_s": over and (over if sampler == "a" else 10 * over), "id": sampler,
        "reference_id": ref, "ratio": (over and sampler != ref and 1 / over) or None,
    }  # fmt: skip


def advice_for(*datasets):
    advice = {
        name: {"setting": {**SETTING, "dataset": name}, "ranking": [choice("a"), choice("b")]}
        for name in datasets
    }
    return {"profile": "cpu", "written": "20260101T000000Z", "advice": advice}


LATER = "20260101T000001Z"


def test_advice_within_ten_percent_of_the_fastest_passes():
    rows = [row("g", "a", 1.1), row("g", "b", 1.0), row("h", "a", 1.11), row("h", "b", 1.0)]
    near, far = judge(advice_for("g", "h"), rows, LATER)
    assert near.ok and not far.ok
    assert near.advised_over == pytest.approx(1.1) and near.fastest_over == 1.0
    assert near.advised_s == 1.1 and near.fastest["sampler"] == "b"
    assert passed([near] * 4 + [far]) and not passed([near] * 3 + [far] * 2)
    assert near.expected_s == pytest.approx(8 * 0.1 + 0.2)  # for the measured batches
    text = "\n".join(lines([near, far]))
    assert "g: 1.10x of the fastest; expected 1 s, took 1.1 s; sampler=a" in text
    assert "within 10% of the fastest on 1 of 2 graphs" in text


OTHER = {
    "model": "gat", "hidden": 8, "batch_size": 64, "fanouts": "2/2", "device": "cuda", "seed": 1,
}  # fmt: skip


@pytest.mark.parametrize("key", OTHER)
def test_rows_of_another_setting_are_ignored(key):
    rows = [row("g", "a", 1.0), {**row("g", "b", 2.0), key: OTHER[key]}]
    (result,) = judge(advice_for("g"), rows, LATER)
    assert not result.ok and result.reason == "1 of 2 choices have no result"


def test_doubtful_row_is_no_result():
    rows = [row("g", "a", 1.0), {**row("g", "b", 2.0), "doubtful": "other programs ran"}]
    (result,) = judge(advice_for("g"), rows, LATER)
    assert not result.ok and result.reason == "1 of 2 choices have no result"


def test_one_failure_is_allowed_among_five_graphs_only():
    rows = [row(g, "a", 1.11 if g == "far" else 1.0) for g in ("g", "far")]
    rows += [row(g, "b", 1.0) for g in ("g", "far")]
    near, far = judge(advice_for("g", "far"), rows, LATER)
    assert passed([near] * 4) and passed([near])
    assert not passed([near] * 3 + [far]) and not passed([far]) and not passed([])


@pytest.mark.parametrize("incomplete", [row("g", "b", None), row("g", "b", 1.0, "incorrect")])
def test_missing_result_fails_a_graph(incomplete):
    (result,) = judge(advice_for("g"), [row("g", "a", 1.0), incomplete], LATER)
    assert not result.ok and result.reason == "1 of 2 choices have no result"
    assert "g: not judged: 1 of 2 choices" in lines([result])[0]


def test_too_many_choices_fail_a_graph():
    many = advice_for("g")
    many["advice"]["g"]["ranking"] = [choice(f"s{n}") for n in range(25)]
    rows = [row("g", f"s{n}", 1.0) for n in range(25)]
    (result,) = judge(many, rows, LATER)
    assert not result.ok and result.reason == "25 choices, more than 24"


def test_run_before_the_advice_is_refused():
    with pytest.raises(UsageError, match="began before the advice was written down"):
        judge(advice_for("g"), [], "20251231T235959Z")


def test_store_over_a_cache_is_another_choice():
    advice = advice_for("g")
    advice["advice"]["g"]["ranking"] = [
        choice("a", features="window"),
        choice("a", features="window", **{"features.table": "cache"}),
    ]
    rows = [
        row("g", "a", 3.0, features="window", table={"name": "cache", "ratio": 0.1}),
        row("g", "a", 2.0, features="window", table={"name": "uva"}),
    ]
    (result,) = judge(advice, rows, LATER)
    assert (result.advised_over, result.fastest_over) == (2.0, 2.0)


def test_existing_advice_is_not_overwritten(tmp_path):
    path = tmp_path / "advice.json"
    path.write_text("{}")
    with pytest.raises(UsageError, match="is there already"):
        held_out.write("cpu", path)


def test_invalid_commands_are_refused():
    with pytest.raises(UsageError, match="give write PROFILE FILE, or judge FILE RUN"):
        main(["guess"])


@pytest.mark.parametrize(
    "text", [None, '{"written": "2026', "[]", '{"written": ""}', '{"written": "", "advice": {}}']
)
def test_invalid_advice_file_is_refused(tmp_path, text, monkeypatch):
    from gnnbench.schema import reader

    monkeypatch.setattr(
        reader, "read", lambda folder: SimpleNamespace(cells=[], record={"started": ""})
    )
    path = tmp_path / "advice.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(
        UsageError, match=r"advice\.json' holds no advice; give a file that 'write'"
    ):
        main(["judge", str(path), str(tmp_path)])


def test_write_command_writes_the_advice_of_a_profile(tmp_path, monkeypatch):
    """Runs the command for one small graph."""
    from gnnbench.contrib.advisor.advice import Setting

    monkeypatch.setenv("GNNBENCH_DATA", str(tmp_path / "store"))
    small = Setting("products~twin@0.005", batch_size=200, fanouts=(4, 3), device="cpu")
    monkeypatch.setattr(held_out, "settings", lambda profile: [small])
    assert main(["write", "cpu", str(tmp_path / "advice.json")]) == 0
    written = json.loads((tmp_path / "advice.json").read_text())
    assert written["profile"] == "cpu" and len(written["written"]) == len(LATER)
    (advice,) = written["advice"].values()
    assert len(advice["ranking"]) == 24 and advice["setting"]["batch_size"] == 200
