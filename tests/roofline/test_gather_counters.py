"""Counters of gathers from host memory: the models and ncu's output side by side."""

import json

import pytest
import torch

from gnnbench.kernels.access import ACCESSES
from gnnbench.roofline import gathers, ncu
from gnnbench.roofline.perf import NoCounters

TABLE_BYTES = 1 << 20


def test_ids_are_distinct_rows_of_the_table():
    ids = gathers.random_ids(480, 2000, TABLE_BYTES)
    assert ids.unique().numel() == 2000 and 0 <= int(ids.min()) <= int(ids.max()) < 2184
    assert torch.equal(ids, gathers.random_ids(480, 2000, TABLE_BYTES))
    with pytest.raises(ValueError, match="has fewer than 2185 rows"):
        gathers.random_ids(480, 2185, TABLE_BYTES)


def test_models_of_rows_of_480_bytes():
    """Listing 2 needs 7.1 requests a row, with its shift 5.2; the suite's kernel 4.5."""
    ids = gathers.random_ids(480, 2000, TABLE_BYTES)
    models = {access: gathers.modelled(access, ids, 480) for access in ACCESSES}
    assert models.pop("page-ordered") is None
    assert models == pytest.approx(
        {"naive": 4.5, "aligned": 4.5, "elementwise": 7.12, "elementwise-shifted": 5.25}, abs=0.03
    )
    with pytest.raises(ValueError, match="rows of a multiple of 4 bytes, not 6"):
        gathers.modelled("naive", ids, 6)


@pytest.fixture
def fake_ncu(monkeypatch):
    """An ncu whose counters are 10, 20, ... for one gather after another."""
    commands = []

    def counted(command, timeout_s, metrics):
        commands.append(command)
        return [dict.fromkeys(metrics, 10.0 * n) for n in (1, 2, 3, 4)]

    monkeypatch.setattr(ncu, "available", lambda metrics: {"host_requests": "x.sum"})
    monkeypatch.setattr(ncu, "counted", counted)
    return commands


def test_counters_are_per_row_and_next_to_the_model(fake_ncu, capsys):
    given = ["--access", "naive", "elementwise", "--row-bytes", "512", "1024"]
    assert gathers.main([*given, "--rows", "10", "--table-bytes", str(TABLE_BYTES)]) == 0
    results = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(r["row_bytes"], r["access"], r["host_requests"]) for r in results] == [
        (512, "naive", 1), (512, "elementwise", 2), (1024, "naive", 3), (1024, "elementwise", 4),
    ]  # fmt: skip
    assert [r["model_requests"] for r in results] == [4, 4, 8, 8]
    assert [r["lines"] for r in results] == [4, 4, 8, 8]
    (command,) = fake_ncu
    assert command[1:4] == ["-m", "gnnbench.roofline.gathers", "--marked"]
    assert command[command.index("--row-bytes") + 1 :] == ["512", "1024"]


def test_a_missing_gather_is_reported(fake_ncu):
    with pytest.raises(NoCounters, match="'ncu' saw 4 gathers of 1"):
        gathers.counted(["naive"], [512], 10, TABLE_BYTES)


def test_widths_must_be_whole_elements(capsys):
    with pytest.raises(SystemExit):
        gathers.main(["--row-bytes", "6"])
    assert "--row-bytes must be multiples of 4" in capsys.readouterr().err
