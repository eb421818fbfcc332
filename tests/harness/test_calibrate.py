import json
import math
import shutil
from dataclasses import replace

import pytest
from fakes import Quiet, by_system

from gnnbench.core.errors import CellsFailedError, UsageError
from gnnbench.harness.calibrate import Wish, calibrate, judge, make_request
from gnnbench.schema import reader
from gnnbench.statistics import noise
from gnnbench.statistics.stopping_rule import Rule
from gnnbench.statistics.variance_prior import committed

WISH = Wish("fake", pairs=20, rounds=2, verify=100, options=("fake.speed=0.01",))


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A store that has one calibration."""
    return tmp_path_factory.mktemp("calibrated") / "store"


@pytest.fixture(scope="module")
def found(fakes_all_along, kept):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GNNBENCH_DATA", str(kept))
        yield calibrate(WISH, kept.parent / "results", Quiet())


@pytest.fixture
def store(monkeypatch, tmp_path):
    monkeypatch.setenv("GNNBENCH_DATA", str(tmp_path / "store"))


def test_pairs_of_one_system_are_measured_like_a_comparison(found):
    run = reader.read(found.folder)
    assert len({s["worker"] for s in run.samples}) == 40
    timed = [s for s in run.samples if not s["warmup"]]
    assert [s["order"] for s in timed] == [0, 1] * 40
    a, b, *_ = (s["id"] for s in timed)
    assert [s["id"] for s in timed[:8]] == [a, b, b, a, b, a, a, b]
    assert {r["work_class"] for r in run.cells if r["verdict"] != "reference"} == {"identical"}
    known = found.calibration
    assert (known.lives, known.rounds, known.until) == (40, 2, "compute")
    assert set(known.spreads) == {"wall_s", "sample_time_s", "memory_io_time_s", "compute_time_s"}
    assert 0.01 <= known.epoch_s < 1 and known.start_s > 0
    assert noise.load(run.record["machine_id"]) == [known]


def test_later_runs_rest_their_floor_and_rounds_on_it(found, kept, launch, monkeypatch, tmp_path):
    for store, known in ((tmp_path / "store", []), (kept, [found.calibration])):
        monkeypatch.setenv("GNNBENCH_DATA", str(store))
        outcome = launch("fake,slow", repeats=2, options=("speed=0.01",))
        row = by_system(outcome)["slow"]
        assert row["floor_from"] == "these pairs"  # another system's
        record = json.loads((outcome.folder / "run.json").read_text())
        assert [noise.Calibration.from_json(c) for c in record["calibration"]] == known


def test_the_runs_folder_has_every_pair_and_what_was_made_of_it(found, tmp_path):
    """False calls among them."""
    with pytest.raises(UsageError, match="--verify needs --pairs 20 or more, not 12"):
        calibrate(Wish("fake", verify=100), tmp_path / "results", Quiet())
    told = json.loads((found.folder / "calibrate.json").read_text())
    assert told["command"] == (
        "gnnbench calibrate --system fake --pairs 20 --rounds 2 --verify 100 -o fake.speed=0.01"
    )
    assert noise.Calibration.from_json(told["calibration"]) == found.calibration
    series = told["log_ratios"]
    assert list(series) == list(found.calibration.spreads) == list(told["verified"])
    timed = [s for s in reader.read(found.folder).samples if not s["warmup"]]
    first = [s["wall_s"] for s in timed if s["life"] == 0 and s["round"] == timed[0]["round"]]
    assert abs(series["wall_s"][0][0]) == pytest.approx(
        abs(math.log(first[0] / first[1])), abs=1e-6
    )
    assert noise.spread(series["wall_s"]) == found.calibration.spreads["wall_s"]
    assert noise.verify(series["wall_s"], Rule(), committed()["cpu"], 100) == found.verified
    assert (found.verified.lives, found.verified.comparisons) == (40, 100)
    assert 0 <= found.verified.rate <= found.verified.bound <= 1

    # A pair in doubt is left out; too few may be left to verify by.
    copy = shutil.copytree(found.folder, tmp_path / "copy")
    events = copy / "events.jsonl"
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    next(e for e in lines if e["event"] == "life" and not e["void"])["doubt"] = "hot"
    events.write_text("".join(json.dumps(e) + "\n" for e in lines))
    pair = make_request(WISH, tmp_path).plan.pairs[0]
    unasked = judge(copy, pair, replace(WISH, verify=0), Rule())
    assert (unasked.calibration.lives, unasked.verified) == (38, None)
    with pytest.raises(
        CellsFailedError, match=r"19 of 20 pairs count \(hot\) and --verify needs 20"
    ):
        judge(copy, pair, WISH, Rule())


def test_what_cannot_be_calibrated_is_said_and_nothing_is_stored(fakes, store, tmp_path, observer):
    for wish, error, words in (
        (Wish("crash", pairs=2, rounds=2), CellsFailedError, "SIGSEGV"),
        (Wish("absent"), CellsFailedError, "pip install absent"),
        (Wish("fak"), UsageError, "did you mean 'fake'"),
        (Wish("fake", rounds=3), UsageError, "--rounds 3 is odd"),
        (Wish("fake", options=("seed=[1, 2]",)), UsageError, "is of one cell, and 2 are named"),
        (
            Wish("fake", options=("rounds=4",)),
            UsageError,
            "takes no 'rounds'; --pairs and --rounds",
        ),
        (
            Wish("spin", pairs=2, rounds=2, options=("spin.speed=0.05", "warmup_epochs=0")),
            CellsFailedError,
            "no calibration: .*spin",
        ),
    ):
        with pytest.raises(error, match=words):
            calibrate(wish, tmp_path / "results", observer)
    assert not noise.store_path().exists()
