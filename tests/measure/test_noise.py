import json

import numpy as np
import pytest

from gnnbench.errors import DataError
from gnnbench.measure import noise
from gnnbench.measure.noise import Calibration, Level


def normal(sigma, pairs=40, rounds=40, between=0.0):
    rng = np.random.default_rng(3)
    return [
        list(np.exp(rng.normal(rng.normal(0, between or 1e-12), sigma, rounds)))
        for _ in range(pairs)
    ]


def test_false_calls_floor_and_power_of_known_noise():
    levels = {level.rounds: level for level in noise.assess(normal(0.02))}
    assert list(levels) == [3, 5, 10, 20, 40]
    assert levels[3].windows == 40 * 13
    # The range of three rounds misses the truth in 2 of 8 cases, of five in 2 of 32.
    assert levels[3].false_call_rate == pytest.approx(0.25, abs=0.06)
    assert levels[5].false_call_rate == pytest.approx(1 / 16, abs=0.05)
    for level in levels.values():
        # Standard error of a median of n normal values: sqrt(pi / 2 n), 0.67 for three.
        assert level.floor == pytest.approx(1.96 * level.spread, rel=0.35)
        assert level.false_call_rate_beyond_floor <= 0.05
        assert level.detectable > level.floor
    assert levels[40].spread == pytest.approx(0.02 * np.sqrt(np.pi / 80), rel=0.3)
    assert levels[40].floor < levels[10].floor < levels[3].floor


def test_a_difference_of_the_detectable_size_is_called_four_times_in_five():
    pairs = normal(0.02)
    level = noise.assess(pairs)[2]
    slower = [[r * (1 - level.detectable) for r in p] for p in pairs]
    windows = [p[i : i + 10] for p in slower for i in range(0, 40, 10)]
    calls = [noise.verdict(noise.median_interval(w, i), level.floor)
             for i, w in enumerate(windows)]  # fmt: skip
    assert calls.count("slower") >= 0.75 * len(calls)


def test_noise_between_lives_of_workers_counts():
    quiet, lively = (noise.assess(normal(0.01, between=b))[-1] for b in (0.0, 0.05))
    assert lively.floor > 3 * quiet.floor
    assert lively.false_call_rate > 0.5
    assert lively.false_call_rate_beyond_floor <= 0.1


def test_identical_times_have_no_floor():
    (level,) = noise.assess([[1.0] * 3] * 2)
    assert (level.floor, level.false_call_rate, level.detectable) == (0.0, 0.0, 0.0)


@pytest.fixture
def calibration(monkeypatch, tmp_path):
    monkeypatch.setenv("GNNBENCH_DATA", str(tmp_path))
    levels = (Level(3, 8, 0.2, 0.1, 0.0, 0.2, 0.05), Level(10, 4, 0.1, 0.04, 0.0, 0.1, 0.02))
    return Calibration("m", "cpu", "s", "d", 2, 8, 0.1, "now", levels)


def test_the_floor_is_that_of_the_next_fewer_rounds(calibration):
    assert [calibration.floor(n) for n in (2, 3, 9, 10, 99)] == [0.1, 0.1, 0.1, 0.04, 0.04]


def test_calibrations_are_kept_by_machine_and_device(calibration):
    from dataclasses import replace

    assert noise.load("m") == {}
    noise.store(calibration)
    noise.store(replace(calibration, device="cuda"))
    noise.store(replace(calibration, machine_id="n"))
    noise.store(replace(calibration, at="later"))
    assert noise.load("m") == {
        "cpu": replace(calibration, at="later"), "cuda": replace(calibration, device="cuda"),
    }  # fmt: skip
    assert set(noise.load("n")) == {"cpu"}
    assert json.loads(noise.store_path().read_text())["m"]["cpu"]["at"] == "later"
    noise.store_path().write_text('{"m": {"cpu": {"floor": 1}}}')
    with pytest.raises(DataError, match="calibrate again"):
        noise.load("m")
