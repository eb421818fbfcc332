"""A run's table for a document and a spreadsheet, and who is fastest."""

import csv
import io
from dataclasses import replace

import pytest

from gnnbench.analysis import render
from gnnbench.analysis.summary import MOST, winners
from gnnbench.schema import CELLS, VERSION, reader, writer
from gnnbench.schema.run_record import RunRecord

BASE = {
    "dataset": "d", "until": "compute", "model": "gcn", "device": "cpu", "status": "ok",
    "recipe": "{}", "seed": 0, "batch_size": 8, "fanouts": "5/5", "threads": 2, "hidden": 16,
    "reference": "baseline", "reference_id": "r", "schema_version": VERSION, "verified": True,
    "judged": "epoch_wall_s", "judged_s": 2.0, "epoch_wall_s": 2.0, "n": 2, "batches": 4,
    "epoch_batches": 4,
}  # fmt: skip
REFERENCE = {**BASE, "id": "r", "system": "baseline", "verdict": "reference"}


def rated(system, ratio, verdict="", **values):
    """A row with a ratio to the reference."""
    ends = {"ratio_ci_low": ratio - 0.25, "ratio_ci_high": ratio + 0.25}
    row = {**BASE, "id": system, "system": system, "ratio": ratio, "verdict": verdict, **ends}
    return {**row, "work_class": "identical", "pairs": 5, **values}


def unrated(system, **values):
    """A row without a ratio."""
    return {**BASE, "id": system, "system": system, **values}


OTHER = "different"


@pytest.mark.parametrize(
    "rows,words",
    [
        (
            [
                rated("fast", 2.0, "faster"),
                rated("wild", 9.0, "unclear"),
                rated("slow", 0.5),
            ],
            "Fastest here: fast, 2.00x as fast as baseline [1.75, 2.25], of 4 compared by wall"
            " time; not distinguishable from it: wild",
        ),
        (
            [rated("a", 0.5, "slower"), rated("b", 0.75, "slower")],
            "Fastest here: baseline, of 3 compared by wall time; next is b, 0.75x as fast"
            " [0.50, 1.00]",
        ),
        (
            [rated("a", 1.5, pairs=2), rated("b", 0.5, "slower")],
            "No winner of 3 compared by wall time: at best a is 1.50x as fast as baseline"
            " [1.25, 1.75], too few pairs for a verdict (2)",
        ),
        (
            [rated("a", 1.5, doubtful="busy")],
            "No winner of 2 compared by wall time: a is 1.50x as fast as baseline [1.25, 1.75],"
            " unreliable",
        ),
        (
            [
                rated("a", 2.0, "faster"),
                rated("b", 9.0, doubtful="busy"),
                rated("c", 8.0, status="unstable"),
            ],
            "Fastest here: a, 2.00x as fast as baseline [1.75, 2.25], of 2 compared by wall time;"
            " not compared: b (unreliable), c (unreliable)",
        ),
        (
            [
                rated("a", 2.0, "faster"),
                unrated("x", status="oom_host"),
                unrated("y", work_class=OTHER),
            ],
            "Fastest here: a, 2.00x as fast as baseline [1.75, 2.25], of 2 compared by wall time;"
            " not compared: x (oom_host), y (different work)",
        ),
        (
            [unrated(name, status="crash") for name in "abcdef"],
            "No verdict: nothing could be compared with baseline: a (crash), b (crash), c (crash),"
            " d (crash) and 2 more",
        ),
    ],
)
def test_who_is_fastest_and_by_how_much(rows, words):
    assert winners([REFERENCE, *rows]) == [words]


def test_each_reference_has_its_winner_and_a_grid_is_cut():
    rows = []
    for n in range(MOST + 2):
        own = {"dataset": f"d{n}", "reference_id": f"r{n}"}
        rows += [
            {**REFERENCE, **own, "id": f"r{n}"},
            rated("f", 2.0, "faster", **own, id=f"f{n}"),
        ]
    sentences = winners(rows)
    assert (
        sentences[0].startswith("d0: fastest here: f, 2.00x as fast as baseline")
        and len(sentences) == MOST + 1
    )
    assert sentences[-1] == "... and 2 more comparisons, in the table"


def test_references_of_one_system_are_distinguished():
    """What has another frontier has a reference of its own, which the first one cannot judge."""
    name = "baseline sampler.frontier=new"
    first = {**REFERENCE, "frontier": "cumulative"}
    own = {**unrated("baseline", id="n", work_class=OTHER), "frontier": "new"}
    pyg = rated("pyg", 0.5, "slower", reference=name, reference_id="n", frontier="new")
    assert winners([first, own, pyg]) == [
        "No verdict: nothing could be compared with baseline: baseline, frontier new (different"
        " work)",
        f"Fastest here: {name}, of 2 compared by wall time; next is pyg, 0.50x as fast"
        " [0.25, 0.75]",
    ]


@pytest.mark.parametrize(
    "rows,words",
    [
        ([REFERENCE], "No verdict: nothing was compared with the reference, so there is no ratio"),
        (
            [{**REFERENCE, "judged_s": None, "status": "oom_host"}, unrated("x")],
            "No verdict: the reference, baseline, has no result (oom_host)",
        ),
        (
            [unrated("x")],
            "No verdict: the reference, baseline, has no result (it was not measured)",
        ),
        (
            [{**unrated("x"), "reference_id": ""}],
            "No verdict: no row has a reference, so there is no ratio",
        ),
    ],
)
def test_without_a_ratio_there_is_no_winner_but_a_reason(rows, words):
    assert winners(rows) == [words]


BUSY = {"foreign_s": 10.0, "foreign_cpu_s": 15.0, "seconds": 20.0, "cpu_s": {"cc1plus": 28.0}}


def test_busy_programs_are_named_once_above_the_table(run):
    assert render.busy(run) == []  # of a run that did not look
    idle = {**dict.fromkeys(BUSY, 0.0), "cpu_s": {}}
    quiet = replace(run, record=RunRecord.model_validate({"busy": idle}))
    assert render.busy(quiet) == []
    line = "other programs used 1.5 cores in the disturbed rounds: cc1plus (1.4)"
    disturbed = replace(run, record=RunRecord.model_validate({"busy": BUSY}))
    assert render.busy(disturbed) == [line]
    assert render.markdown(disturbed).splitlines()[2] == f"{line}."


@pytest.fixture
def run(tmp_path):
    rows = [REFERENCE, rated("fast", 2.0, "faster", doubtful="busy, 1.5 cores")]
    rows.append({**BASE, "id": "z", "system": "z", "status": "crash", "reason": "a | b"})
    for key in ("judged_s", "epoch_wall_s"):
        rows[-1].pop(key)
    writer.write_csv(tmp_path / "cells.csv", CELLS, rows)
    return reader.read(tmp_path)


def test_csv_has_plain_numbers_and_no_empty_column(run):
    first, second, third = csv.DictReader(io.StringIO(render.to_csv(run)))
    assert (second["system"], second["status"]) == ("fast", "ok")
    assert [float(second[k]) for k in ("epoch_wall_s", "ratio", "ratio_ci_high")] == [2, 2, 2.25]
    assert (first["verdict"], third["status"], third["ratio"]) == ("reference", "crash", "")
    assert "sample_time_s" not in first
    assert (first["dataset"], third["batch_size"]) == ("d", "8")  # of all rows alike


def test_latex_has_the_columns_of_markdown_and_escapes_texts(run):
    lines = render.latex(run).splitlines()
    heads = next(x for x in render.markdown(run).splitlines() if x.startswith("| system"))
    begin = lines.index(r"\begin{tabular}{llrrll}")
    names = [h.strip().replace("+-", r"$\pm$") for h in heads.strip("|").split("|")]
    assert lines[begin + 1 : begin + 4 : 2] == [r"\hline"] * 2
    assert lines[begin + 2] == " & ".join(names) + r" \\"
    rows = lines[begin + 4 : lines.index(r"\end{tabular}") - 1]
    assert len(rows) == 3 and {row.count(" & ") for row in rows} == {len(names) - 1}
    assert r"2.00x {[}1.75, 2.25{]}" in rows[1]
    assert "% z: crash: a | b" in lines  # all but the tables are comments
    known = ("%", "\\", *(row[:4] for row in [lines[begin + 2], *rows]))
    assert all(line.startswith(known) for line in lines)


def test_settings_of_all_rows_are_repeated(run):
    notes = ["baseline runs with sampler=fused-map", "a note of the moment"]
    run = replace(run, record=RunRecord(notes=notes))
    assert render.remarks(run, False)[0] == "baseline runs with sampler=fused-map"
    assert "- baseline runs with sampler=fused-map" in render.markdown(run).splitlines()
    assert "of the moment" not in render.markdown(run)


def test_markdown_is_a_table_with_remarks_below(run):
    lines = render.markdown(run).splitlines()
    assert lines[0].startswith("d, until compute, gcn, cpu, batch 8")
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 5 and len({line.count("|") for line in table}) == 1
    assert "2.00x [1.75, 2.25]" in table[3] and "fast (?)" in table[3]
    assert "- (?) fast: busy, 1.5 cores" in lines
    assert f"- {render.RATIO}" in lines and "- z: crash: a \\| b" in lines
