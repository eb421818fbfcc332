"""Runs of one and of two cells."""

import pytest
from written_runs import cached, epochs, write_run

HALF = [{"cache": 50, "host": 50}, {"cache": 51, "host": 49}, {"cache": 49, "host": 51}]


@pytest.fixture
def one(tmp_path):
    """Write a run of one cell with given hits by epoch; ``one(served, **cell)`` -> its folder."""

    def write(served, name="run", started="20260101T000000Z", machine="here", **more):
        row = cached("a", "degree", 0.1, **more)
        return write_run(
            tmp_path / name, [row], epochs("a", *served), started=started, machine=machine
        )

    return write


@pytest.fixture
def two(tmp_path):
    """Write a run where ``degree`` is the reference of ``presc#1`` with a ratio of times."""

    def write(ratio, low, high, pairs=5, name="run", machine="here", **more):
        first = cached("ref", "degree", 0.1, reference_id="ref", work_class="")
        result = {"ratio": ratio, "ratio_ci_low": low, "ratio_ci_high": high, "pairs": pairs}
        cells = [first, cached("b", "presc#1", 0.1, **{**result, **more})]
        return write_run(tmp_path / name, cells, machine=machine)

    return write
