"""Claims about several machines, judged by rows written by hand."""

import pytest
from machine_rows import run, write

from gnnbench.reproduction.claim import Claim
from gnnbench.reproduction.evidence import open_runs
from gnnbench.reproduction.judge import judge
from gnnbench.reproduction.verdict import (
    HOLDS,
    NOT_MEASURED,
    NOT_REPRODUCED,
    REFUTED,
    SHAPE,
    UNCLEAR,
)

COMMON = {"id": "fastsample/x.a1", "source": "here", "says": "so"}
ROUNDS = {"measure": "machines_rounds", "of": "vanilla", "rows": {"hops": 3}}
EPOCH = {
    "measure": "machines_epoch", "of": "vanilla", "versus": "hybrid", "by": "ratio", "unit": "x",
    "port": "S",
}  # fmt: skip
GAP = {"measure": "machines_loss_gap", "of": "hybrid", "versus": "vanilla", "by": "difference"}


def verdict(tmp_path, machine_rows, **claim):
    write(tmp_path / "run", machine_rows, '{"machine_id": "here"}')
    (judged,) = judge([Claim(**COMMON, **claim)], open_runs([tmp_path]))
    return judged


@pytest.mark.parametrize(("number", "expected"), [(6, HOLDS), (2, REFUTED)])
def test_rounds_of_machines_are_exact(tmp_path, number, expected):
    judged = verdict(tmp_path, run(), **ROUNDS, number=number)
    assert judged.verdict == expected
    assert [f.label for f in judged.findings] == [
        "`vanilla` (2 machines, 1 Gbit/s, fanouts 15/10/5)"
    ]


@pytest.mark.parametrize(("faster", "expected"), [(1.6, HOLDS), (1.2, SHAPE), (1.0, UNCLEAR)])
def test_ratio_of_machine_epochs_is_judged_as_a_time(tmp_path, faster, expected):
    judged = verdict(tmp_path, run(faster=faster), **EPOCH, kind="upto", number=1.5)
    assert judged.verdict == expected
    (one,) = judged.findings
    assert one.estimate.value == pytest.approx(faster) and one.estimate.n == 5


def test_emulated_machines_do_not_refute_times(tmp_path):
    judged = verdict(tmp_path, run(faster=0.8), **EPOCH, kind="order", least=1.0)
    assert judged.verdict == NOT_REPRODUCED
    assert judged.reason.endswith(
        "range. Emulated machines share their cores, so it does not refute the claim"
    )


def test_times_with_other_load_or_few_trials_are_unclear(tmp_path):
    noisy = verdict(tmp_path / "a", run(others_cores=1.0), **EPOCH, kind="order", least=1.0)
    assert noisy.verdict == UNCLEAR
    assert noisy.reason.endswith(
        "other programs used the machine in 100% of the trials; repeat 'python -m"
        " gnnbench.contrib.emulated_network compare'"
    )
    few = verdict(tmp_path / "b", run(lives=2), **EPOCH, kind="order", least=1.0)
    assert few.verdict == UNCLEAR and "fewer than 3 pairs" in few.reason
    counts = verdict(tmp_path / "c", run(lives=1, others_cores=1.0), **ROUNDS, number=6)
    assert counts.verdict == HOLDS


@pytest.mark.parametrize(("gap", "expected"), [(1e-5, HOLDS), (1e-3, REFUTED)])
def test_loss_gap_of_machines_is_within_rounding(tmp_path, gap, expected):
    rows = run()
    rows[4]["loss_gap"] = gap
    assert rows[4]["system"] == "hybrid"
    assert verdict(tmp_path, rows, **GAP, most=1e-4).verdict == expected


def test_unmeasured_claim_names_the_command(tmp_path):
    judged = verdict(tmp_path, run(), **ROUNDS | {"rows": {"hops": 7}}, number=14)
    assert judged.verdict == NOT_MEASURED
    assert "run 'python -m gnnbench.contrib.emulated_network compare' as root" in judged.reason


def test_measure_of_two_systems_needs_versus():
    with pytest.raises(ValueError, match="a measure of two systems needs 'versus'"):
        Claim(**COMMON, measure="machines_epoch", of="vanilla", number=1)
    with pytest.raises(ValueError, match="a measure of two systems needs 'versus'"):
        Claim(**COMMON, **ROUNDS, versus="hybrid", by="ratio", number=1)
