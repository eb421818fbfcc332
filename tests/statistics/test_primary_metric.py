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
def test_primary_metric_is_the_last_phase_or_the_epoch(until, name, time):
    metric = primary_metric.of(until)
    assert (metric.name, metric.value(SAMPLE)) == (name, time)


def test_missing_primary_time_is_an_error():
    with pytest.raises(ValueError, match="sample_time_s"):
        primary_metric.of("sample").value({"wall_s": 1.0, "sample_time_s": None})
