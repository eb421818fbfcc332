"""Lines of the journal and their records."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gnnbench.schema import SAMPLES, raw
from gnnbench.schema.events import parse_event
from gnnbench.schema.samples import OF_EVALUATION, OF_GPU, Count, EpochSample

COMMITTED = Path(__file__).parents[2] / "results" / "reference"


def lines(run: str) -> Iterator[dict[str, Any]]:
    return raw.records(COMMITTED / run / raw.SAMPLE_JOURNAL)


@pytest.mark.parametrize("run", [
    "h200/roofline", "h200/bandwidth-gpu-fig8", "h200/convergence-gpu",
    "xeon-2-threads/convergence", "xeon-2-threads/scalability-partitions",
])  # fmt: skip
def test_committed_samples_are_written_as_they_were_read(run: str) -> None:
    later = {"stopped_s", "suspended_s", "stolen_s", "cpu_s", "runner_wait_s", "worker_wait_s",
             "threads_wait_s", "work_cpu_s", "checked"}  # fmt: skip
    for line in lines(run):
        sample = EpochSample.parse(line)
        written = sample.to_json(line.keys() >= OF_GPU, line.keys() >= OF_EVALUATION)
        again = json.loads(json.dumps(written))
        assert again.items() >= line.items()
        assert not any(again[name] for name in again.keys() - line.keys())
        assert again.keys() - line.keys() <= later


def test_a_sample_has_the_columns_of_its_table_and_typed_counts() -> None:
    line = {"id": "c", "life": 2, "loss": None, "counts": [["features", "calls", "host", 3]],
            "of_another_version": 1, "memory_io_time_s": 0.5}  # fmt: skip
    sample = EpochSample.parse(line)
    assert EpochSample.columns() == SAMPLES
    assert sample.counts == [Count("features", "calls", "host", 3)]
    assert (sample.id, sample.life, sample.loss, sample.throttle) == ("c", 2, None, "")
    assert (sample.time_s("memory_io"), sample.alone_s("memory_io")) == (0.5, None)
    assert (sample.stolen_s, sample.param_moved, sample.roofline) == (0.0, (), None)


def test_fields_that_were_not_measured_are_not_written() -> None:
    sample = EpochSample(id="c", roofline=None)
    every = {*sample.to_json(on_gpu=True, evaluated=True)}
    assert every >= OF_GPU | OF_EVALUATION | {"loss", "counts"}
    assert every - {*sample.to_json(on_gpu=False, evaluated=True)} == OF_GPU
    assert every - {*sample.to_json(on_gpu=True, evaluated=False)} == OF_EVALUATION
    assert "roofline" not in every and "void" not in every
    assert "roofline" in EpochSample(roofline=[]).to_json(on_gpu=False, evaluated=False)


def test_rows_of_profiles_and_retrainings_are_typed() -> None:
    tables = {"stages": [{"stage": "pick", "hop": 1, "host_s": 0.1}], "error": "out of memory",
              "facts": [{"stage": "order", "name": "groups", "value": 2.0}]}  # fmt: skip
    profile = parse_event({"event": "profile", "cell": "c", "profile": tables})["profile"]
    assert [(row.stage, row.hop, row.device_s) for row in profile.stages] == [("pick", 1, None)]
    assert [(fact.name, fact.value, fact.where) for fact in profile.facts] == [("groups", 2.0, "")]
    assert (profile.kernels, profile.error) == ([], "out of memory")
    line = {"event": "retrained", "cell": "c", "trainings": [[{"epoch": 5, "loss": 1.0}]]}
    ((epoch,),) = parse_event(line)["trainings"]
    assert (epoch.epoch, epoch.loss, epoch.param_moved) == (5, 1.0, ())
    assert parse_event({"event": "verified", "x": 1}) == {"event": "verified", "x": 1}
