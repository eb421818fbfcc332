"""The runner's clock against the worker's, on epochs written out."""

from gnnbench.harness.clocks import parent_doubt, parent_fault, quiescence_doubt, quiescence_fault


def epochs(*gaps, wall=1.0, key="parent_s"):
    return [{"wall_s": wall, key: wall + gap} for gap in gaps]


def test_a_clock_that_agrees_is_right():
    assert parent_fault(epochs(0.001, 0.002, 0.0005)) == ""
    assert parent_doubt(epochs(0.001, 0.002, 0.0005)) == ""
    assert parent_fault([]) == parent_doubt([]) == ""
    assert parent_fault([{"wall_s": 1.0}]) == ""  # of a run that did not note it


def test_a_clock_that_tells_less_is_not():
    fault = parent_fault(epochs(0.5, 0.5, 0.5))
    assert fault == (
        "its epochs took 1.5 s by the harness's clock where it reports 1 s: its clock is wrong"
    )
    assert "where it reports 0.02 s" in parent_fault(epochs(0.019, 0.019, wall=0.02))
    assert parent_fault(epochs(0.009, 0.009, wall=0.02)) == ""  # may be waiting for a core
    assert "0.009 s of 0.029 s longer" in parent_doubt(epochs(0.009, 0.009, wall=0.02))


def test_a_clock_that_tells_more_is_not():
    assert "where it reports 1 s" in parent_fault(epochs(-0.1, -0.1, -0.1))


def test_single_epochs_show_nothing():
    assert parent_fault(epochs(0.5, 0.001, 0.001, 0.001)) == ""
    assert parent_doubt(epochs(0.5, 0.001, 0.001, 0.001)) == ""
    assert parent_fault(epochs(0.5, 0.5, 0.001, 0.001)) == ""
    assert parent_fault(epochs(0.5, 0.5, 0.5, 0.001)) != ""


def test_work_after_an_epoch_is_a_fault_and_a_little_a_doubt():
    def after(*gaps):
        return epochs(*gaps, key="outer_s")

    assert quiescence_fault(after(0.0, 0.0)) == quiescence_doubt(after(0.0, 0.0)) == ""
    assert quiescence_fault(epochs(0.5, 0.5)) == ""  # another clock's
    assert quiescence_fault(after(0.1, 0.1)) == ""  # less than a tenth
    assert (
        quiescence_doubt(after(0.1, 0.1))
        == "its epochs were idle 0.1 s of 1.1 s after they had ended"
    )
    assert "0.3 s more than they lasted: work goes on" in quiescence_fault(after(0.3, 0.3))
    # A single epoch shows it by chance, and one that ended before shows nothing.
    assert quiescence_fault(after(0.0, 0.0, 0.0, 0.3)) == quiescence_fault(after(-0.3, -0.3)) == ""
