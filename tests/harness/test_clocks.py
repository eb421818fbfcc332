"""The runner's clock compared with the worker's, with epochs written by hand."""

from gnnbench.harness.clocks import parent_doubt, parent_fault, quiescence_doubt, quiescence_fault
from gnnbench.schema.samples import EpochSample


def epochs(*gaps, wall=1.0, key="parent_s"):
    return [EpochSample(wall_s=wall, **{key: wall + gap}) for gap in gaps]


def test_agreeing_clocks_are_no_fault():
    assert parent_fault(epochs(0.001, 0.002, 0.0005)) == ""
    assert parent_doubt(epochs(0.001, 0.002, 0.0005)) == ""
    assert parent_fault([]) == parent_doubt([]) == ""
    assert parent_fault([EpochSample(wall_s=1.0)]) == ""  # a run that did not record parent_s


def test_worker_clock_that_reports_less_is_a_fault():
    fault = parent_fault(epochs(0.5, 0.5, 0.5))
    assert fault == (
        "its epochs took 1.5 s by the harness's clock where it reports 1 s: its clock is wrong"
    )
    assert "where it reports 0.02 s" in parent_fault(epochs(0.019, 0.019, wall=0.02))
    assert (
        parent_fault(epochs(0.009, 0.009, wall=0.02)) == ""
    )  # the worker may have waited for a core
    assert "0.009 s of 0.029 s longer" in parent_doubt(epochs(0.009, 0.009, wall=0.02))


def test_worker_clock_that_reports_more_is_a_fault():
    assert "where it reports 1 s" in parent_fault(epochs(-0.1, -0.1, -0.1))


def test_single_epochs_are_no_fault():
    assert parent_fault(epochs(0.5, 0.001, 0.001, 0.001)) == ""
    assert parent_doubt(epochs(0.5, 0.001, 0.001, 0.001)) == ""
    assert parent_fault(epochs(0.5, 0.5, 0.001, 0.001)) == ""
    assert parent_fault(epochs(0.5, 0.5, 0.5, 0.001)) != ""


def test_long_work_after_an_epoch_is_a_fault_and_short_work_a_doubt():
    def after(*gaps):
        return epochs(*gaps, key="outer_s")

    assert quiescence_fault(after(0.0, 0.0)) == quiescence_doubt(after(0.0, 0.0)) == ""
    assert quiescence_fault(epochs(0.5, 0.5)) == ""  # measured by the runner's clock only
    assert quiescence_fault(after(0.1, 0.1)) == ""  # less than a tenth
    assert (
        quiescence_doubt(after(0.1, 0.1))
        == "its epochs were idle 0.1 s of 1.1 s after they had ended"
    )
    assert "0.3 s more than they lasted: work goes on" in quiescence_fault(after(0.3, 0.3))
    # One epoch may be a coincidence; an outer time below the wall time is ignored.
    assert quiescence_fault(after(0.0, 0.0, 0.0, 0.3)) == quiescence_fault(after(-0.3, -0.3)) == ""
