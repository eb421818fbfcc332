import json

import pytest
from fakes import by_system

from gnnbench.errors import CellsFailedError, UsageError
from gnnbench.measure import noise
from gnnbench.results import reader
from gnnbench.results.table import remarks
from gnnbench.runner.calibrate import Wish, calibrate


@pytest.fixture
def store(monkeypatch, tmp_path):
    monkeypatch.setenv("GNNBENCH_DATA", str(tmp_path / "store"))


def test_pairs_of_one_system_are_measured_like_a_comparison(fakes, store, tmp_path, observer):
    wish = Wish("fake", pairs=2, rounds=4, options=("fake.speed=0.01",))
    found, folder = calibrate(wish, tmp_path / "results", observer)
    run = reader.read(folder)
    assert len({s["worker"] for s in run.samples}) == 4
    timed = [s for s in run.samples if not s["warmup"]]
    assert [s["order"] for s in timed] == [0, 1] * 8
    first, second, *_ = (s["id"] for s in timed)
    assert [s["id"] for s in timed[:8]] == [first, second, second, first] * 2
    assert {r["work_class"] for r in run.cells if r["verdict"] != "reference"} == {"identical"}
    assert [level.rounds for level in found.levels] == [3, 4]
    assert noise.load(run.record["machine_id"]) == {"cpu": found}
    ratio = timed[0]["wall_s"] / timed[1]["wall_s"]
    assert abs(1 - ratio) < 0.5 and found.levels[0].floor < 0.5


def test_later_runs_hold_every_ratio_against_the_floor(launch, store, tmp_path, observer):
    outcome = launch("fake,slow", repeats=3, options=("speed=0.01",))
    assert by_system(outcome)["slow"]["noise_floor"] is None
    assert any("never calibrated for cpu" in r for r in remarks(outcome.rows))
    found, _ = calibrate(Wish("fake", pairs=2, rounds=3), tmp_path / "results", observer)
    outcome = launch("fake,slow", repeats=3, options=("speed=0.01",))
    rows = by_system(outcome)
    assert rows["slow"]["noise_floor"] == rows["fake"]["noise_floor"] == found.floor(3)
    record = json.loads((outcome.folder / "run.json").read_text())
    assert noise.Calibration.from_json(record["calibration"]["cpu"]) == found
    assert not any("calibrated" in r for r in remarks(outcome.rows))
    wide = noise.Level(3, 2, 0.0, 0.9, 0.0, 0.9, 0.5)
    noise.store(noise.Calibration(**{**found.__dict__, "levels": (wide,)}))
    row = by_system(launch("fake,slow", repeats=3, options=("speed=0.01",)))["slow"]
    assert (row["verdict"], row["noise_floor"]) == ("tie", 0.9)
    assert row["ratio_ci_high"] < 1


def test_what_cannot_be_calibrated_is_said_and_nothing_is_stored(fakes, store, tmp_path, observer):
    for wish, error, words in (
        (Wish("crash", pairs=2, rounds=3), CellsFailedError, "SIGSEGV"),
        (Wish("absent"), CellsFailedError, "pip install absent"),
        (Wish("fak"), UsageError, "did you mean 'fake'"),
    ):
        with pytest.raises(error, match=words):
            calibrate(wish, tmp_path / "results", observer)
    assert not noise.store_path().exists()
