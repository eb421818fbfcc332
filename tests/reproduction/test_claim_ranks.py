"""Claims about systems of several ranks, judged by rows written by hand."""

import pytest
from written_runs import cell, claim, epochs, verdict_of, write_run


def partitioned_cell(ident, partition):
    """A row of a system whose ranks have one partition each."""
    schedule = {"name": "data-parallel", "ranks": 2, "partition": partition}
    return cell(ident, "fastsample", {"schedule": schedule}, until="compute")


def epochs_with_losses(ident, *losses, rounds=(), batches=4):
    """Measured epochs with these losses and ``rounds`` of communication by stage."""
    counts = [[stage, "exchange_rounds", "", n] for stage, n in rounds]
    rows = epochs(ident, *({} for _ in losses), batches=batches, counts=counts)
    return [{**epoch, "loss": loss} for epoch, loss in zip(rows, losses, strict=True)]


def test_communication_rounds_are_counted_per_batch(tmp_path):
    cells = [partitioned_cell("v", "vanilla"), partitioned_cell("h", "hybrid")]
    samples = [
        *epochs_with_losses("v", 1.0, 1.0, rounds=[("sampler", 16), ("features", 8)]),
        *epochs_with_losses("h", 1.0, rounds=[("features", 8)]),
    ]
    folder = write_run(tmp_path / "run", cells, samples)
    statement = claim(
        measure="rounds", of="fastsample schedule.partition=vanilla", number=6.0, tolerance=0.0
    )
    judged = verdict_of(statement, folder)
    (finding,) = judged.findings
    assert (finding.estimate.low, finding.estimate.value, finding.estimate.high) == (6, 6, 6)
    assert judged.verdict == "holds"
    of_hybrid = statement.model_copy(update={"of": "fastsample schedule.partition=hybrid"})
    assert verdict_of(of_hybrid, folder).verdict == "refuted"
    assert verdict_of(of_hybrid.model_copy(update={"number": 2.0}), folder).verdict == "holds"


def test_losses_are_compared_with_the_reference_in_the_same_epochs(tmp_path):
    cells = [cell("ref", "baseline", until="compute"), partitioned_cell("h", "hybrid")]
    reference = epochs_with_losses("ref", 2.0, 1.0)
    folder = write_run(
        tmp_path / "run", cells, [*reference, *epochs_with_losses("h", 2.0002, 0.9998)]
    )
    statement = claim(
        measure="loss_apart", of="fastsample schedule.partition=hybrid", number=0.0, tolerance=1e-3
    )
    judged = verdict_of(statement, folder)
    assert judged.findings[0].estimate.value == pytest.approx(2e-4)
    assert judged.verdict == "holds"
    apart = write_run(tmp_path / "apart", cells, [*reference, *epochs_with_losses("h", 2.0, 0.99)])
    assert verdict_of(statement, apart).verdict == "refuted"
    alone = write_run(tmp_path / "alone", cells, epochs_with_losses("h", 2.0))
    assert verdict_of(statement, alone).verdict == "not measured"
