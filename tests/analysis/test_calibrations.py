"""Committed calibrations agree with their own pairs."""

import json
from dataclasses import asdict

import pytest
from committed import ROOT, name

from gnnbench.core.files import plain
from gnnbench.statistics import noise, primary_metric
from gnnbench.statistics.noise import Calibration
from gnnbench.statistics.stopping_rule import Rule
from gnnbench.statistics.variance_prior import committed

FILES = sorted((ROOT / "results").rglob("calibrate.json"))


@pytest.fixture(scope="module", params=FILES, ids=name)
def content(request):
    return json.loads(request.param.read_text())


def test_there_are_committed_calibrations():
    assert FILES


def test_spreads_are_those_of_the_pairs(content):
    known, series = Calibration.from_json(content["calibration"]), content["log_ratios"]
    assert known.spreads.keys() == series.keys()
    for key, pairs in series.items():
        assert (2 * len(pairs), {len(p) for p in pairs}) == (known.lives, {known.rounds})
        assert asdict(noise.spread(pairs)) == pytest.approx(asdict(known.spreads[key]), rel=1e-9)


def test_false_calls_are_those_of_the_pairs(content):
    assert content["verified"].keys() == content["log_ratios"].keys()
    for key, stated in content["verified"].items():
        known = Calibration.from_json(content["calibration"])
        is_primary = key == primary_metric.of(known.until).key
        prior = committed()[known.device] if is_primary else None
        again = noise.verify(content["log_ratios"][key], Rule(), prior, stated["comparisons"])
        assert plain(asdict(again)) == pytest.approx(stated, rel=1e-9), key
        assert stated["bound"] <= 0.05, key
