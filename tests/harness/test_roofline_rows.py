"""Rows of rooflines from journals written by hand."""

import json
from dataclasses import replace

import pytest

from gnnbench import schema
from gnnbench.analysis import roofline_table
from gnnbench.core.cell import Cell
from gnnbench.harness.journal import RunJournal
from gnnbench.harness.plan import CellPair, Plan
from gnnbench.harness.reduce.roofline import roofline_rows
from gnnbench.schema import writer

CELL = Cell("e", "baseline", "d", "gcn", threads=2, recipe={"aggregate": {"name": "csr"}})


def ceiling(name, level, rate, row_bytes=0, unit="B/s", remark=""):
    return {
        "kind": "ceiling", "name": name, "level": level, "row_bytes": row_bytes,
        "level_bytes": 9 << 20, "unit": unit,
        "remark": remark, "amount": rate * 2.0, "seconds": 2.0, "spread": 0.1,
    }  # fmt: skip


# 100 flop/s, 40 and 50 B/s of memory, 20 single words a second.
CEILINGS = [
    ceiling("fma", "", 100.0, unit="flop/s"), ceiling("copy", "memory", 40.0),
    ceiling("read", "memory", 50.0, remark="small"), ceiling("read", "L2", 400.0),
    ceiling("rows", "memory", 80.0, row_bytes=4), ceiling("rows", "memory", 45.0, row_bytes=64),
]  # fmt: skip


def kernel(name="aggregate", seconds=2.0, flops=60, least=120, reads=0, direction="forward"):
    unit = "flop/s" if flops else "read/s" if reads else "B/s"
    layer = 1 if flops else 0
    return {
        "kind": "kernel", "name": name, "direction": direction, "layer": layer, "mode": "gcn",
        "width": 16, "heads": 0, "unit": unit, "amount": float(flops or reads or least),
        "seconds": seconds,
        "spread": 0.2, "flops": flops, "bytes": least, "asked": 2 * least, "reads": reads,
    }  # fmt: skip


@pytest.fixture
def rows_of(tmp_path):
    """Makes rows of cells from records by cell, trial and round, and from profiles."""

    def make_rows(*cells, profiles=(), failed=()):
        samples, events = [], []
        for cell, trials in cells:
            pair = CellPair(cell).id
            for trial, rounds in enumerate(trials):
                events.append({"event": "life", "pair": pair, "life": trial, "doubt": "",
                               "void": False, "seconds": 1.0, "start_s": 0.1})  # fmt: skip
                samples += [
                    {"id": cell.id, "pair": pair, "life": trial, "round": n, "warmup": False,
                     "roofline": records}
                    for n, records in enumerate(rounds)
                ]  # fmt: skip
        events += [{"event": "profile", "cell": c.id, "profile": p} for c, p in profiles]
        events += [{"event": "failed", "cell": c.id, "status": "incorrect", "reason": "r"}
                   for c in failed]  # fmt: skip
        for name, lines in (("samples", samples), ("events", events)):
            text = "".join(json.dumps(line) + "\n" for line in lines)
            (tmp_path / f"{name}.jsonl").write_text(text)
        listed = [cell for cell, _ in cells]
        plan = Plan(listed, [CellPair(c) for c in listed], {c.id: c for c in listed})
        rows = roofline_rows(plan, RunJournal(tmp_path))
        writer.write_csv(tmp_path / "roofline.csv", schema.ROOFLINE, rows)
        return rows

    return make_rows


def kernels(rows):
    return [r for r in rows if r["kind"] == "kernel"]


def test_low_intensity_kernel_is_bound_by_memory(rows_of):
    """20 flop/s at 0.5 flop/B; the read ceiling of 50 B/s allows 25 flop/s."""
    slower = [
        {**c, "seconds": 2.5} if c["name"] == "read" and c["level"] == "memory" else c
        for c in CEILINGS
    ]
    fast = [*CEILINGS, kernel(seconds=3.0)]
    (row,) = kernels(rows_of((CELL, [[fast, fast], [[*slower, kernel(seconds=3.0)]]])))
    assert (row["value"], row["n"], row["spread"], row["time_s"]) == (
        pytest.approx(20.0), 2, 0.2, 3.0
    )  # fmt: skip
    assert (row["flops"], row["least_bytes"], row["asked_bytes"]) == (60, 120, 240)
    assert (row["intensity"], row["asked_intensity"]) == (0.5, 0.25)
    assert row["bound"] == "memory"
    # By trial: 20 / 25, and 20 / 20, as reads are then as slow as copies; geometric mean.
    assert row["of_ceiling"] == pytest.approx((0.8 * 1.0) ** 0.5)
    assert row["ceiling"] == 25.0 and row["doubtful"] == ""
    assert row["counters"] == "none: not counted"


def test_high_intensity_kernel_is_bound_by_fma(rows_of):
    (row,) = kernels(rows_of((CELL, [[[*CEILINGS, kernel(flops=600, least=120, seconds=8.0)]]])))
    assert (row["bound"], row["ceiling"], row["of_ceiling"]) == ("fma", 100.0, 0.75)
    assert row["of_ceiling_low"] is None


def test_kernels_without_flops_are_bound_by_bytes_or_reads(rows_of):
    records = [
        *CEILINGS, kernel("gather", flops=0, least=80, direction=""),
        kernel("sample", flops=0, reads=30, direction=""),
    ]  # fmt: skip
    gather, sample = kernels(rows_of((CELL, [[records]])))
    assert (gather["bound"], gather["unit"], gather["value"]) == ("memory", "B/s", 40.0)
    assert (gather["of_ceiling"], gather["intensity"]) == (0.8, None)
    assert (sample["bound"], sample["unit"], sample["value"]) == ("rows", "read/s", 15.0)
    assert (sample["ceiling"], sample["of_ceiling"]) == (20.0, 0.75)


@pytest.mark.parametrize(
    ("times", "doubtful"),
    [
        ([1.0, 1.0, 1.0], True),  # always 60 flop/s, where memory allows 25
        ([2.2, 2.22, 2.18], True),
        ([2.3, 4.0, 1.8], False),  # above the ceiling, but within the interval
        ([1.0], False),  # one trial has no interval
        ([3.0, 3.0, 3.0], False),
    ],
)
def test_kernel_above_its_ceiling_is_doubtful(rows_of, times, doubtful):
    trials = [[[*CEILINGS, kernel(seconds=s)]] for s in times]
    (row,) = kernels(rows_of((CELL, trials)))
    assert bool(row["doubtful"]) == doubtful
    if doubtful:
        assert row["doubtful"].startswith("above its ceiling (memory) by more than the interval")
        assert roofline_table.remarks([row])[0].startswith(
            f"{row['cell']}: aggregate forward, layer 1: above its ceiling"
        )


def test_reads_above_their_ceiling_are_not_doubtful(rows_of):
    fast = kernel("sample", flops=0, reads=300, direction="")
    (row,) = kernels(rows_of((CELL, [[[*CEILINGS, fast]]] * 3)))
    assert row["of_ceiling_low"] > 1 and row["doubtful"] == ""


def test_ceilings_are_pooled_by_device_and_threads(rows_of):
    other = replace(CELL, hidden=128)
    alone = replace(CELL, threads=1)
    twice = [{**c, "amount": 4 * c["amount"]} for c in CEILINGS]
    rows = rows_of(
        (CELL, [[[*CEILINGS, kernel()]]]), (other, [[[*twice, kernel()]]]),
        (alone, [[[*CEILINGS, kernel()]]]),
    )  # fmt: skip
    ceilings = [(r["name"], r["level"], r["row_bytes"], r["threads"], r["n"]) for r in rows[:12]]
    names = [("fma", "", 0), ("copy", "memory", 0), ("read", "memory", 0), ("read", "L2", 0),
             ("rows", "memory", 4), ("rows", "memory", 64)]  # fmt: skip
    assert ceilings == [
        (*n, threads, trials) for threads, trials in ((2, 2), (1, 1)) for n in names
    ]
    assert rows[0]["value"] == pytest.approx(200.0)  # geometric mean of 100 and 400
    assert [r["remark"] for r in rows[:3]] == ["", "", "small"]
    assert [r["id"] for r in rows[12:]] == [CELL.id, other.id, alone.id]
    assert all(r.id == "" for r in rows[:12])


def test_counters_are_added_to_the_row_of_their_kernel(rows_of):
    counted = {"name": "aggregate", "direction": "forward", "layer": 1, "mode": "gcn", "width": 16,
            "heads": 0,
            "counters": "ncu", "l1_hit": 0.05, "l2_hit": 0.2, "memory_bytes": 240,
            "flops_run": 64}  # fmt: skip
    records = [*CEILINGS, kernel(), kernel(direction="backward")]
    forward, backward = kernels(
        rows_of((CELL, [[records]]), profiles=[(CELL, {"counters": [counted]})])
    )
    assert (forward["counters"], forward["l1_hit"], forward["l2_hit"]) == ("ncu", 0.05, 0.2)
    assert (forward["memory_bytes"], forward["memory_intensity"]) == (240, 0.25)
    assert backward["counters"] == "none: not counted" and backward["l1_hit"] is None


def test_reason_for_missing_counters_is_reported(rows_of):
    failed = {"error": "the worker died"}
    (row,) = kernels(rows_of((CELL, [[[*CEILINGS, kernel()]]]), profiles=[(CELL, failed)]))
    assert row["counters"] == "none: the worker died"
    assert roofline_table.remarks([row]) == ["no hardware counters: the worker died"]


def test_failed_cells_and_cells_without_kernels_have_no_rows(rows_of):
    assert rows_of((CELL, [[[*CEILINGS, kernel()]]]), failed=[CELL]) == []
    assert rows_of((CELL, [[[]]])) == []
    plain = replace(CELL, seed=1)
    assert {r.get("id") for r in kernels(rows_of((CELL, [[[kernel()]]]), (plain, [[None]])))} == {
        CELL.id
    }


def test_kernel_without_ceilings_has_no_bound(rows_of):
    (row,) = kernels(rows_of((CELL, [[[kernel()]]])))
    assert (row["bound"], row["doubtful"], round(row["value"])) == ("", "", 30)


def test_roofline_tables(rows_of):
    rows = rows_of((CELL, [[[*CEILINGS, kernel(), kernel("gather", flops=0, direction="")]]] * 2))
    rows = [{c.name: r.get(c.name) for c in schema.ROOFLINE} for r in rows]
    above, below = roofline_table.roofline_tables(rows)
    assert [line["name"] for line in above.lines] == [
        "fma", "copy", "read", "read", "rows of 4 B", "rows of 64 B",
    ]  # fmt: skip
    assert above.lines[4]["rate"] == "0.0000200 M reads/s"
    assert above.lines[3]["size"] == "9 MiB"
    assert above.lines[3]["rate"] == "0.000000400 GB/s" and above.lines[3]["spread"] == "10.0%"
    first, second = below.lines
    assert (first["kernel"], first["layer"], first["width"]) == ("aggregate forward", "1", "16")
    assert (first["rate"], first["flop/B"], first["bound"]) == (
        "0.0000000300 GFLOP/s",
        "0.5",
        "memory",
    )
    assert (first["of bound"], first["time"], first["+-"]) == ("120.0%", "2.00 s", "0.0%")
    assert (second["kernel"], second["layer"], second["flop/B"]) == ("gather", "", "")
    assert "L1 hits" not in below.heads
    assert roofline_table.roofline_tables([]) == []
