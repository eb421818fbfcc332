import pytest

from gnnbench.statistics import primary_metric

SAMPLE = {"wall_s": 4.0, "sample_time_s": 1.0, "memory_io_time_s": 2.0, "compute_time_s": 0.5}


@pytest.mark.parametrize(
    "until,name,time",
    [
        ("sample", "sample_time_s", 1.0),
        ("memory_io", "memory_io_time_s", 2.0),
        ("compute", "epoch_wall_s", 4.0),
    ],
)
def test_a_cell_is_judged_by_its_last_phase_or_the_whole_epoch(until, name, time):
    found = primary_metric.of(until)
    assert (found.name, found.value(SAMPLE)) == (name, time)


def test_an_epoch_without_the_judged_time_is_no_epoch_of_zero_seconds():
    with pytest.raises(ValueError, match="sample_time_s"):
        primary_metric.of("sample").value({"wall_s": 1.0, "sample_time_s": None})
