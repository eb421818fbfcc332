"""Held-out graphs: the experiment measures what the advice chose from, and the judge is strict."""

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

HERE = find("best")


@pytest.mark.parametrize(("profile", "facts"), [("cpu", FACTS), ("gpu", CACHED)])
def test_the_experiment_is_what_is_chosen_from(profile, facts, tmp_path):
    asked = experiment.resolve(experiment.load("advise"), profile)
    plan = make_request("advise", Overrides(profile=profile), tmp_path).plan
    reasons = {f.reason for f in plan.failures.values() if f.status != "missing_dep"}
    assert not reasons, reasons
    cells = plan.cells
    device = asked.axis("device")[0]
    wanted = [
        flat(HERE.resolved(c.settings(0.1, device), device, Until.COMPUTE).recipe)
        for c in choices(facts, device)
    ]
    graphs = asked.axis("dataset")
    assert len(graphs) == 5 and not any("products" in name or "@21" in name for name in graphs)
    for name in graphs:
        found = [flat(c.recipe) for c in cells if c.dataset == name]
        assert len(found) == len(wanted) == 24
        assert all(one in found for one in wanted)


def test_what_is_asked_is_the_experiments_own():
    found = held_out.settings("cpu")
    assert len(found) == 5 and {s.device for s in found} == {"cpu"}
    assert {(s.model, s.hidden, s.batch_size, s.fanouts) for s in found} == {
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
    """A choice that takes ``over`` times as long as the reference, whose sampler is ``ref``; its
    seconds are of an hour in which the machine was ten times as slow for one of them."""
    recipe = {"sampler": {"name": sampler}, "features": {"name": features, **more}}
    recipe["order"] = {"name": "as-drawn"}
    return {
        **SETTING, "fanouts": "15/10/5", "threads": 2, "doubtful": "",
        "dataset": dataset, "status": status, "batches": 8, "recipe": json.dumps(recipe),
        "judged_s": over and (over if sampler == "a" else 10 * over), "id": sampler,
        "reference_id": ref, "ratio": (over and sampler != ref and 1 / over) or None,
    }  # fmt: skip


def told(*datasets):
    advice = {
        name: {"setting": {**SETTING, "dataset": name}, "ranking": [choice("a"), choice("b")]}
        for name in datasets
    }
    return {"profile": "cpu", "written": "20260101T000000Z", "advice": advice}


LATER = "20260101T000001Z"


def test_a_tenth_is_near_and_more_is_not():
    rows = [row("g", "a", 1.1), row("g", "b", 1.0), row("h", "a", 1.11), row("h", "b", 1.0)]
    near, far = judge(told("g", "h"), rows, LATER)
    assert near.ok and not far.ok
    assert near.advised_over == pytest.approx(1.1) and near.fastest_over == 1.0
    assert near.advised_s == 1.1 and near.fastest["sampler"] == "b"
    assert passed([near] * 4 + [far]) and not passed([near] * 3 + [far] * 2)
    assert near.expected_s == pytest.approx(8 * 0.1 + 0.2)  # of the batches that were measured
    text = "\n".join(lines([near, far]))
    assert "g: 1.10x of the fastest; expected 1 s, took 1.1 s; sampler=a" in text
    assert "within 10% of the fastest on 1 of 2 graphs" in text


OTHER = {
    "model": "gat", "hidden": 8, "batch_size": 64, "fanouts": "2/2", "device": "cuda", "seed": 1,
}  # fmt: skip


@pytest.mark.parametrize("key", OTHER)
def test_rows_of_another_setting_are_none_of_the_advice(key):
    rows = [row("g", "a", 1.0), {**row("g", "b", 2.0), key: OTHER[key]}]
    (found,) = judge(told("g"), rows, LATER)
    assert not found.ok and found.reason == "1 of 2 choices have no result"


def test_a_row_in_doubt_is_no_result():
    rows = [row("g", "a", 1.0), {**row("g", "b", 2.0), "doubtful": "other programs ran"}]
    (found,) = judge(told("g"), rows, LATER)
    assert not found.ok and found.reason == "1 of 2 choices have no result"


def test_a_graph_is_spared_of_five_alone():
    rows = [row(g, "a", 1.11 if g == "far" else 1.0) for g in ("g", "far")]
    rows += [row(g, "b", 1.0) for g in ("g", "far")]
    near, far = judge(told("g", "far"), rows, LATER)
    assert passed([near] * 4) and passed([near])
    assert not passed([near] * 3 + [far]) and not passed([far]) and not passed([])


@pytest.mark.parametrize("lacking", [row("g", "b", None), row("g", "b", 1.0, "incorrect")])
def test_a_choice_without_a_result_is_no_victory(lacking):
    (found,) = judge(told("g"), [row("g", "a", 1.0), lacking], LATER)
    assert not found.ok and found.reason == "1 of 2 choices have no result"
    assert "g: not judged: 1 of 2 choices" in lines([found])[0]


def test_more_choices_than_were_allowed():
    many = told("g")
    many["advice"]["g"]["ranking"] = [choice(f"s{n}") for n in range(25)]
    rows = [row("g", f"s{n}", 1.0) for n in range(25)]
    (found,) = judge(many, rows, LATER)
    assert not found.ok and found.reason == "25 choices, more than 24"


def test_a_run_from_before_the_advice():
    with pytest.raises(UsageError, match="began before the advice was written down"):
        judge(told("g"), [], "20251231T235959Z")


def test_a_store_over_a_cache_is_another_choice():
    advice = told("g")
    advice["advice"]["g"]["ranking"] = [
        choice("a", features="window"),
        choice("a", features="window", **{"features.table": "cache"}),
    ]
    rows = [
        row("g", "a", 3.0, features="window", table={"name": "cache", "ratio": 0.1}),
        row("g", "a", 2.0, features="window", table={"name": "uva"}),
    ]
    (found,) = judge(advice, rows, LATER)
    assert (found.advised_over, found.fastest_over) == (2.0, 2.0)


def test_what_was_written_is_not_written_again(tmp_path):
    path = tmp_path / "advice.json"
    path.write_text("{}")
    with pytest.raises(UsageError, match="is there already"):
        held_out.write("cpu", path)


def test_words_that_are_none():
    with pytest.raises(UsageError, match="give write PROFILE FILE, or judge FILE RUN"):
        main(["guess"])


@pytest.mark.parametrize(
    "text", [None, '{"written": "2026', "[]", '{"written": ""}', '{"written": "", "advice": {}}']
)
def test_a_file_that_holds_no_advice(tmp_path, text, monkeypatch):
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


def test_a_profile_is_written_down(tmp_path, monkeypatch):
    """Of one small graph, by the command itself."""
    from gnnbench.contrib.advisor.advice import Setting

    monkeypatch.setenv("GNNBENCH_DATA", str(tmp_path / "store"))
    small = Setting("products~twin@0.005", batch_size=200, fanouts=(4, 3), device="cpu")
    monkeypatch.setattr(held_out, "settings", lambda profile: [small])
    assert main(["write", "cpu", str(tmp_path / "advice.json")]) == 0
    found = json.loads((tmp_path / "advice.json").read_text())
    assert found["profile"] == "cpu" and len(found["written"]) == len(LATER)
    (advice,) = found["advice"].values()
    assert len(advice["ranking"]) == 24 and advice["setting"]["batch_size"] == 200
