import json
import math
import shutil
from dataclasses import replace

import pytest
from fakes import Quiet, by_system

from gnnbench.core.errors import CellsFailedError, UsageError
from gnnbench.harness import calibrate as calibration
from gnnbench.harness.calibrate import Wish, calibrate, judge, make_request
from gnnbench.schema import reader
from gnnbench.statistics import noise
from gnnbench.statistics.stopping_rule import Rule
from gnnbench.statistics.variance_prior import committed

RULE = Rule(analyses=(3, 5))  # the pairs of two comparisons suffice to verify it
WISH = Wish("fake", pairs=10, rounds=2, verify=100, options=("fake.speed=0.01",))


@pytest.fixture(scope="module")
def calibrated_store(tmp_path_factory):
    """A dataset store that contains one calibration."""
    return tmp_path_factory.mktemp("calibrated") / "store"


@pytest.fixture(scope="module")
def calibrated(module_fakes, calibrated_store):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GNNBENCH_DATA", str(calibrated_store))
        with patch.context() as fewer:
            fewer.setattr(calibration, "Rule", lambda: RULE)
            result = calibrate(WISH, calibrated_store.parent / "results", Quiet())
        yield result


@pytest.fixture
def store(monkeypatch, tmp_path):
    monkeypatch.setenv("GNNBENCH_DATA", str(tmp_path / "store"))


def test_calibration_measures_pairs_of_one_system_as_a_comparison(calibrated):
    run = reader.read(calibrated.folder)
    assert len({s["worker"] for s in run.samples}) == 20
    timed = [s for s in run.samples if not s["warmup"]]
    assert [s["order"] for s in timed] == [0, 1] * 20
    a, b, *_ = (s["id"] for s in timed)
    assert [s["id"] for s in timed[:8]] == [a, b, b, a, b, a, a, b]
    assert {r["work_class"] for r in run.cells if r["verdict"] != "reference"} == {"identical"}
    known = calibrated.calibration
    assert (known.lives, known.rounds, known.until) == (20, 2, "compute")
    assert set(known.spreads) == {"wall_s", "sample_time_s", "memory_io_time_s", "compute_time_s"}
    assert 0.01 <= known.epoch_s < 1 and known.start_s > 0
    assert noise.load(run.record["machine_id"]) == [known]


def test_later_runs_record_the_calibration(
    calibrated, calibrated_store, launch, monkeypatch, tmp_path
):
    for store, known in ((tmp_path / "store", []), (calibrated_store, [calibrated.calibration])):
        monkeypatch.setenv("GNNBENCH_DATA", str(store))
        outcome = launch("fake,slow", repeats=2, options=("speed=0.01",))
        row = by_system(outcome)["slow"]
        assert row["floor_from"] == "these pairs"  # the calibration is of another system
        record = json.loads((outcome.folder / "run.json").read_text())
        assert [noise.Calibration.from_json(c) for c in record["calibration"]] == known


def test_calibration_folder_has_every_pair_and_the_verification(calibrated, tmp_path, monkeypatch):
    """The verification counts false verdicts."""
    with pytest.raises(UsageError, match="--verify needs --pairs 20 or more, not 12"):
        calibrate(Wish("fake", verify=100), tmp_path / "results", Quiet())
    record = json.loads((calibrated.folder / "calibrate.json").read_text())
    assert record["command"] == (
        "gnnbench calibrate --system fake --pairs 10 --rounds 2 --verify 100 -o fake.speed=0.01"
    )
    assert noise.Calibration.from_json(record["calibration"]) == calibrated.calibration
    series = record["log_ratios"]
    assert list(series) == list(calibrated.calibration.spreads) == list(record["verified"])
    timed = [s for s in reader.read(calibrated.folder).samples if not s["warmup"]]
    first = [s["wall_s"] for s in timed if s["life"] == 0 and s["round"] == timed[0]["round"]]
    assert abs(series["wall_s"][0][0]) == pytest.approx(
        abs(math.log(first[0] / first[1])), abs=1e-6
    )
    assert noise.spread(series["wall_s"]) == calibrated.calibration.spreads["wall_s"]
    assert noise.verify(series["wall_s"], RULE, committed()["cpu"], 100) == calibrated.verified
    assert (calibrated.verified.lives, calibrated.verified.comparisons) == (20, 100)
    assert 0 <= calibrated.verified.rate <= calibrated.verified.bound <= 1

    monkeypatch.setattr(calibration, "MOST_DOUBTED", 0.1)
    # A doubtful pair is left out; then too few pairs remain for --verify.
    copy = shutil.copytree(calibrated.folder, tmp_path / "copy")
    events = copy / "events.jsonl"
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    next(e for e in lines if e["event"] == "life" and not e["void"])["doubt"] = "hot"
    events.write_text("".join(json.dumps(e) + "\n" for e in lines))
    pair = make_request(WISH, tmp_path).plan.pairs[0]
    unverified = judge(copy, pair, replace(WISH, verify=0), RULE)
    assert (unverified.calibration.lives, unverified.verified) == (18, None)
    with pytest.raises(
        CellsFailedError, match=r"9 of 10 pairs count \(hot\) and --verify needs 10"
    ):
        judge(copy, pair, WISH, RULE)


def test_failed_calibration_raises_and_stores_nothing(fakes, store, tmp_path, observer):
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
