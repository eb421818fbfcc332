import csv
import io
import json
import sys

import pytest

from gnnbench import cli, files
from gnnbench.errors import UsageError
from gnnbench.results import compare_text, schema, writer
from gnnbench.results.compare import compare, open_run

ROW = {
    "system": "s", "dataset": "d", "until": "compute", "model": "gcn", "device": "cpu",
    "pick": "floyd", "frontier": "cumulative", "law": "l", "batch_size": 8, "fanouts": "2/2",
    "hidden": 4, "learning_rate": 0.1, "seed": 0, "max_batches": 0, "recipe": "{}", "batches": 4,
    "epoch_batches": 4, "schema_version": schema.VERSION, "seeds": 32, "threads": 2,
    "sampled_edges": 1000, "unique_nodes": 500, "n": 4, "status": "ok", "reason": "",
}  # fmt: skip
WALLS = (1.00, 1.01, 0.99, 1.00)


def run(folder, cells, machine="m1", samples=True, **record):
    """A run on disk: ``cells`` are (changes of the row, wall times)."""
    folder.mkdir()
    rows, taken = [], []
    for nth, (changes, walls) in enumerate(cells):
        row = {**ROW, "id": f"c{nth}", **changes}
        if walls:
            low, high = min(walls), max(walls)
            row |= {"judged_s": sorted(walls)[len(walls) // 2], "ci_low_s": low}
            row |= {"ci_high_s": high, "n": len(walls)}
        rows.append(row)
        # Where sampling is judged the wall time is three times as long, whatever the sampler.
        taken += [
            {"id": row["id"], "warmup": False, "wall_s": w}
            if row["until"] == "compute"
            else {"id": row["id"], "warmup": False, "wall_s": 3.0, "sample_time_s": w}
            for w in walls
        ]
        taken.append({"id": row["id"], "warmup": True, "wall_s": 100.0})
        taken.append({"id": row["id"], "warmup": False, "wall_s": 50.0, "void": True})
    writer.write_csv(folder / "cells.csv", schema.CELLS, rows)
    if samples:
        writer.write_csv(folder / "samples.csv", schema.SAMPLES, taken)
    files.write_json(folder / "run.json", {"machine_id": machine, "versions": {}, **record})
    return folder


def scaled(factor):
    return tuple(w * factor for w in WALLS)


@pytest.mark.parametrize(
    "factor,floor,threshold,verdict",
    [
        (1.0, None, None, "tie"),
        (1.2, None, None, "slower"),
        (0.8, None, None, "faster"),
        (1.2, 0.3, None, "tie"),
        (0.8, 0.3, None, "tie"),
        (1.2, 0.3, 0.05, "slower"),
        (1.2, None, 0.5, "tie"),
    ],
)
def test_verdicts(tmp_path, factor, floor, threshold, verdict):
    a = run(tmp_path / "a", [({"noise_floor": floor}, WALLS)])
    b = run(tmp_path / "b", [({}, scaled(factor))])
    found = compare(open_run(a), open_run(b / "cells.csv"), threshold)
    (cell,) = found.cells
    assert cell.verdict == verdict
    assert cell.regression == (verdict == "slower") == bool(found.regressions)
    assert cell.ci_low <= cell.ratio <= cell.ci_high
    assert cell.ratio == pytest.approx(1 / factor, rel=0.01)
    assert any("calibrate" in w for w in found.warnings) == (floor is None and threshold is None)


def test_cells_match_by_id_else_by_what_they_are_and_missing_ones_are_listed(tmp_path):
    a = run(tmp_path / "a", [({"system": "x"}, WALLS), ({"system": "y"}, WALLS)])
    b = run(tmp_path / "b", [({"system": "z", "id": "q"}, WALLS),
                             ({"system": "x", "id": "p", "recipe": "{ }"}, WALLS)])  # fmt: skip
    found = compare(open_run(a), open_run(b))
    assert [c.system for c in found.cells] == ["x"]
    assert (found.only_a, found.only_b) == (["y"], ["z"])
    assert found.common.startswith("d, until compute, gcn, cpu, batch 8, fanouts 2/2")
    assert not found.regressions


def test_equal_work_under_two_names_is_two_cells(tmp_path):
    cells = [({"id": "c", "system": "x"}, WALLS), ({"id": "c", "system": "y"}, WALLS)]
    a = run(tmp_path / "a", cells)
    b = run(tmp_path / "b", cells[::-1])
    found = compare(open_run(a), open_run(b))
    assert [c.system for c in found.cells] == ["x", "y"] and not found.only_b


def test_runs_of_other_definitions_are_matched_by_threads_as_well(tmp_path):
    a = run(tmp_path / "a", [({"threads": 2}, WALLS)])
    b = run(tmp_path / "b", [({"id": "one", "threads": 1}, scaled(2.0)),
                             ({"id": "two", "threads": 2}, WALLS)])  # fmt: skip
    found = compare(open_run(a), open_run(b))
    assert [(c.threads, c.verdict) for c in found.cells] == [(2, "tie")]
    assert not found.regressions
    assert found.only_b == ["s, 1 threads"]


def test_the_same_cell_with_all_cores_of_another_machine_is_warned_of(tmp_path):
    a = run(tmp_path / "a", [({"threads": 2}, WALLS)])
    b = run(tmp_path / "b", [({"threads": 4}, WALLS)])
    assert any("threads" in w for w in compare(open_run(a), open_run(b)).warnings)


def test_samplers_are_compared_by_their_sampling_time(tmp_path):
    sampling = {"until": "sample", "model": ""}
    a = run(tmp_path / "a", [(sampling, WALLS)])
    b = run(tmp_path / "b", [(sampling, scaled(2.0))])  # their wall times are equal
    (cell,) = compare(open_run(a), open_run(b)).cells
    assert (cell.judged, cell.verdict) == ("sample_time_s", "slower")
    assert cell.ratio == pytest.approx(0.5, rel=0.02)


def test_a_limit_that_leaves_the_epoch_whole_is_none(tmp_path):
    a = run(tmp_path / "a", [({}, WALLS)])
    b = run(tmp_path / "b", [({"id": "q", "max_batches": 4}, WALLS)])
    assert len(compare(open_run(a), open_run(b)).cells) == 1


@pytest.mark.parametrize(
    "key,value",
    [
        ("device", "cuda"), ("recipe", '{"sampler": {"name": "a"}}'), ("seed", 1), ("threads", 1),
        ("max_batches", 3), ("until", "sample"),
    ],
)  # fmt: skip
def test_other_cells_do_not_match(tmp_path, key, value):
    a = run(tmp_path / "a", [({}, WALLS)])
    b = run(tmp_path / "b", [({"id": "q", key: value}, WALLS)])
    with pytest.raises(UsageError, match="share no cell"):
        compare(open_run(a), open_run(b))


@pytest.mark.parametrize(
    "before,after,words,worse",
    [
        ({}, {"status": "crash"}, "ok in A, crash in B", True),
        ({}, {"status": "incorrect"}, "ok in A, incorrect in B", True),
        ({}, {"status": "unstable"}, "unstable in B", False),
        ({}, {"status": "missing_dep"}, "missing_dep in B", False),
        ({"status": "crash"}, {}, "crash in A, ok in B", False),
        ({"status": "oom_gpu"}, {"status": "oom_gpu"}, "both are oom_gpu", False),
        ({}, {"batches": 3}, "batches is 4 in A, 3 in B", False),
        ({}, {"sampled_edges": 980}, "sampled_edges is 1000 in A, 980 in B", False),
        ({}, {"frontier": "new"}, "frontier", False),
    ],
)
def test_incomparable_cells_say_why(tmp_path, before, after, words, worse):
    a = run(tmp_path / "a", [(before, WALLS)])
    b = run(tmp_path / "b", [(after, WALLS)])
    found = compare(open_run(a), open_run(b))
    (cell,) = found.cells
    assert (cell.verdict, cell.ratio, cell.regression) == ("incomparable", None, worse)
    assert words in cell.reason


def test_a_failed_cell_of_another_definition_matches_though_it_knows_no_pick(tmp_path):
    a = run(tmp_path / "a", [({}, WALLS)])
    b = run(tmp_path / "b", [({"id": "q", "pick": "default", "status": "timeout"}, ())])
    (cell,) = compare(open_run(a), open_run(b)).cells
    assert (cell.verdict, cell.regression) == ("incomparable", True)


def test_without_samples_the_tables_intervals_are_used(tmp_path):
    a = run(tmp_path / "a", [({}, WALLS)], samples=False)
    b = run(tmp_path / "b", [({}, scaled(2.0))])
    (cell,) = compare(open_run(a), open_run(b)).cells
    assert cell.verdict == "slower"
    assert (cell.ci_low, cell.ci_high) == pytest.approx((0.99 / 2.02, 1.01 / 1.98))


def test_a_single_epoch_gives_no_verdict(tmp_path):
    a = run(tmp_path / "a", [({}, (1.0,))])
    b = run(tmp_path / "b", [({}, (9.0,))])
    (cell,) = compare(open_run(a), open_run(b)).cells
    assert (cell.verdict, cell.regression) == ("incomparable", False)


def test_another_machine_is_warned_of(tmp_path):
    a = run(tmp_path / "a", [({}, WALLS)], versions={"torch": "1"})
    b = run(tmp_path / "b", [({}, WALLS)], machine="m2", versions={"torch": "2"})
    warnings = compare(open_run(a), open_run(b)).warnings
    assert any("different machines" in w for w in warnings)
    assert any("torch: 1, 2" in w for w in warnings)


def test_formats(tmp_path):
    a = run(tmp_path / "a", [({}, WALLS), ({"system": "y"}, WALLS)])
    b = run(tmp_path / "b", [({}, scaled(2.0))])
    found = compare(open_run(a), open_run(b))
    text = compare_text.markdown(found)
    assert text.startswith("d, until compute, gcn")
    assert text.splitlines()[3].count("---|") == text.splitlines()[4].count(" | ") + 1
    assert "- only in A: y" in text
    first, second = csv.DictReader(io.StringIO(compare_text.to_csv(found)))
    assert (first["verdict"], first["regression"]) == ("slower", "True")
    assert "only in A" in second["reason"]
    assert json.loads(json.dumps(found.to_json()))["regression"] is True


def command(monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["gnnbench", "compare", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code, *capsys.readouterr()


def test_the_command_ends_with_five_on_a_regression(tmp_path, monkeypatch, capsys):
    a = run(tmp_path / "a", [({}, WALLS)])
    b = run(tmp_path / "b", [({}, scaled(1.2))])
    code, out, err = command(monkeypatch, capsys, a, b)
    assert (code, err) == (5, "")
    assert "slower" in out and "0.833x" in out
    code, out, _ = command(monkeypatch, capsys, a, b, "--threshold", "0.5", "--format", "json")
    assert (code, json.loads(out)["cells"][0]["verdict"]) == (0, "tie")
    assert command(monkeypatch, capsys, b, a, "--format", "markdown")[0] == 0
    assert command(monkeypatch, capsys, a, b, "--format", "csv")[0] == 5
    code, out, err = command(monkeypatch, capsys, a, tmp_path)
    assert (code, out) == (2, "") and "no cells.csv" in err
