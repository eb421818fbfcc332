"""The figure of several machines: lengths of bars equal the rows' values."""

import pytest
from machine_rows import run, write

from gnnbench.analysis.plots import machines
from gnnbench.schema.reader import read_machines


@pytest.fixture
def drawn(tmp_path):
    rows = run() + run(machines=4) + run(lives=1, hops=1, fanouts="3", warmup=True)
    write(tmp_path / "run", rows)
    return machines.figure(read_machines(tmp_path / "run"))


def test_there_is_a_panel_for_each_setting_with_times_and_one_of_bytes(drawn):
    assert [ax.get_title() for ax in drawn.axes] == [
        "2 machines, 1 Gbit/s",
        "4 machines, 1 Gbit/s",
        "sent on all links per step (MB)",
    ]


def test_bars_add_up_to_the_epoch(drawn):
    first = drawn.axes[0]
    names = [t.get_text() for t in first.get_yticklabels()]
    assert names == ["hybrid", "vanilla", "DistDGL"]  # the fastest on top
    # Three parts of three systems: sampling 2 s, features 0.25 s, the rest of 4.08 s.
    widths = [bar.get_width() for bar in first.patches]
    assert widths[3:5] == pytest.approx([2.0, 0.25])
    assert sum(widths[:3]) == pytest.approx(2.0399, abs=1e-3)
    assert sum(widths[3:6]) == pytest.approx(4.0798, abs=1e-3)


def test_bytes_are_of_all_machines_together(drawn):
    last = drawn.axes[-1]
    # 70000 B in 10 steps of each rank.
    widths = {round(bar.get_width(), 6) for bar in last.patches}
    assert widths == {0.014, 0.028}
