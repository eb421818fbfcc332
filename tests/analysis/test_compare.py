import csv
import io
import json
import sys

import pytest
from ratio_runs import RATIOS, run, scaled

from gnnbench import cli, schema
from gnnbench.analysis import compare_text, run_names
from gnnbench.analysis.compare import compare
from gnnbench.core import files
from gnnbench.core.errors import UsageError
from gnnbench.schema import reader, writer


def compared(comparison):
    """The cells that are no reference."""
    return [c for c in comparison.cells if c.system != "r"]


@pytest.mark.parametrize(
    "factor,margin,verdict",
    [
        (1.0, 0.01, "same"), (0.8, 0.01, "slower"), (1.2, 0.01, "faster"), (0.97, 0.01, "slower"),
        (0.995, 0.05, "same"), (0.97, 0.02, "unclear"), (0.8, 0.5, "unclear"),
    ],
)  # fmt: skip
def test_verdicts_rest_on_the_change_of_the_ratio(tmp_path, factor, margin, verdict):
    a = run(tmp_path / "a", [({}, RATIOS)])
    b = run(tmp_path / "b", [({}, scaled(factor))], day=3.0)  # all takes three times as long
    comparison = compare(
        reader.read(a), reader.read(run_names.find(str(b / "cells.csv"), b)), margin
    )
    (cell,) = compared(comparison)
    assert cell.verdict == verdict
    assert cell.regression == (verdict == "slower") == bool(comparison.regressions)
    assert cell.change_ci_low <= cell.change <= cell.change_ci_high
    assert cell.change == pytest.approx(factor)
    assert (cell.pairs_a, cell.pairs_b) == (5, 5)


def test_times_without_ratios_are_no_evidence(tmp_path):
    a = run(tmp_path / "a", [({"ratio": None}, ())])
    b = run(tmp_path / "b", [({"ratio": None}, ())], day=9.0)
    comparison = compare(reader.read(a), reader.read(b))
    assert [c.verdict for c in comparison.cells] == [
        "not judged",
        "not judged",
    ] and not comparison.regressions
    assert "the reference itself" in comparison.cells[0].reason
    assert "no ratio in A" in comparison.cells[1].reason


@pytest.mark.parametrize("changes,ratios,words", [
    ({}, RATIOS[:2], "fewer than 3 pairs: 5 in A, 2 in B"),
    ({"doubtful": "a neighbour"}, RATIOS, "unreliable in B"),
    ({"reference": "other"}, RATIOS, "its reference is r in A, other in B"),
])  # fmt: skip
def test_cells_without_a_verdict_have_a_reason(tmp_path, changes, ratios, words):
    a = run(tmp_path / "a", [({}, RATIOS)])
    b = run(tmp_path / "b", [(changes, ratios)])
    (cell,) = compared(compare(reader.read(a), reader.read(b)))
    assert (cell.verdict, cell.change) == ("not judged", None) and words in cell.reason


def test_cells_match_by_id_or_settings_and_missing_ones_are_listed(tmp_path):
    a = run(tmp_path / "a", [({"system": "x"}, RATIOS), ({"system": "y"}, RATIOS)])
    b = run(tmp_path / "b", [({"system": "z", "id": "q"}, RATIOS),
                             ({"system": "x", "id": "p", "recipe": "{ }"}, RATIOS)])  # fmt: skip
    comparison = compare(reader.read(a), reader.read(b))
    assert [c.system for c in compared(comparison)] == ["x"]
    assert (comparison.only_a, comparison.only_b) == (["y"], ["z"])
    assert comparison.common.startswith("d, until compute, gcn, cpu, batch 8, fanouts 2/2")
    assert not comparison.regressions


def test_equal_work_under_two_names_is_two_cells(tmp_path):
    cells = [({"id": "c", "system": "x"}, RATIOS), ({"id": "c", "system": "y"}, RATIOS)]
    a = run(tmp_path / "a", cells)
    b = run(tmp_path / "b", cells[::-1])
    comparison = compare(reader.read(a), reader.read(b))
    assert [c.system for c in compared(comparison)] == ["x", "y"] and not comparison.only_b


def test_runs_of_other_definitions_are_matched_by_threads_as_well(tmp_path):
    a = run(tmp_path / "a", [({"threads": 2}, RATIOS)])
    b = run(tmp_path / "b", [({"id": "one", "threads": 1}, scaled(0.5)),
                             ({"id": "two", "threads": 2}, RATIOS)])  # fmt: skip
    comparison = compare(reader.read(a), reader.read(b))
    assert [(c.threads, c.verdict) for c in compared(comparison)] == [(2, "same")]
    assert not comparison.regressions
    assert comparison.only_b == ["s, 1 thread"]


def test_the_same_cell_with_all_cores_of_another_machine_is_warned_of(tmp_path):
    a = run(tmp_path / "a", [({"threads": 2}, RATIOS)])
    b = run(tmp_path / "b", [({"threads": 4}, RATIOS)])
    assert any("threads" in w for w in compare(reader.read(a), reader.read(b)).warnings)


def test_samplers_are_compared_by_their_sampling_time(tmp_path):
    sampling = {"until": "sample", "model": ""}
    a = run(tmp_path / "a", [(sampling, RATIOS)])
    b = run(tmp_path / "b", [(sampling, scaled(0.5))])  # their wall times are equal
    (cell,) = compared(compare(reader.read(a), reader.read(b)))
    assert (cell.judged, cell.verdict) == ("sample_time_s", "slower")
    assert cell.change == pytest.approx(0.5)


def test_a_limit_that_leaves_the_epoch_whole_is_none(tmp_path):
    a = run(tmp_path / "a", [({}, RATIOS)])
    b = run(tmp_path / "b", [({"id": "q", "max_batches": 4}, RATIOS)])
    assert len(compared(compare(reader.read(a), reader.read(b)))) == 1


@pytest.mark.parametrize(
    "key,value",
    [
        ("device", "cuda"), ("recipe", '{"sampler": {"name": "a"}}'), ("seed", 1), ("threads", 1),
        ("max_batches", 3), ("until", "sample"),
    ],
)  # fmt: skip
def test_other_cells_do_not_match(tmp_path, key, value):
    a = run(tmp_path / "a", [({}, RATIOS)])
    b = run(tmp_path / "b", [({"id": "q", key: value}, RATIOS)])
    comparison = compare(reader.read(a), reader.read(b))
    assert not compared(comparison) and len(comparison.only_a) == len(comparison.only_b) == 1


def test_runs_that_share_nothing_are_refused(tmp_path):
    a, b = run(tmp_path / "a", []), run(tmp_path / "b", [])
    text = (b / "cells.csv").read_text().replace("ref,", "other,").replace(",cpu,", ",cuda,")
    (b / "cells.csv").write_text(text)
    with pytest.raises(UsageError, match="share no cell"):
        compare(reader.read(a), reader.read(b))


@pytest.mark.parametrize(
    "before,after,words,worse",
    [
        ({}, {"status": "crash"}, "ok in A, crash in B", True),
        ({}, {"status": "incorrect"}, "ok in A, incorrect in B", True),
        ({}, {"status": "missing_dep"}, "missing_dep in B", True),
        ({"status": "crash"}, {}, "crash in A, ok in B", False),
        ({"status": "oom_gpu"}, {"status": "oom_gpu"}, "both are oom_gpu", False),
        ({}, {"batches": 3}, "batches is 4 in A, 3 in B", False),
        ({}, {"sampled_edges": 980}, "sampled_edges is 1000 in A, 980 in B", False),
        ({}, {"frontier": "new"}, "frontier", False),
    ],
)
def test_incomparable_cells_say_why(tmp_path, before, after, words, worse):
    a = run(tmp_path / "a", [(before, RATIOS)])
    b = run(tmp_path / "b", [(after, RATIOS)])
    comparison = compare(reader.read(a), reader.read(b))
    (cell,) = compared(comparison)
    assert (cell.verdict, cell.change, cell.regression) == ("incomparable", None, worse)
    assert words in cell.reason and not comparison.judged


def test_unstable_cells_are_not_judged(tmp_path):
    a = run(tmp_path / "a", [({}, RATIOS)])
    b = run(tmp_path / "b", [({"status": "unstable"}, RATIOS)])
    comparison = compare(reader.read(a), reader.read(b))
    (cell,) = compared(comparison)
    assert (cell.verdict, cell.reason) == ("not judged", "ok in A, unstable in B")
    assert not comparison.judged and not comparison.regressions


def with_gpu(folder, name):
    """The run with a machine that has a GPU, none for ""."""
    record = json.loads((folder / "run.json").read_text())
    record["machine"] = {"gpus": [{"name": name, "memory_bytes": 1.0}] if name else []}
    files.write_json(folder / "run.json", record)
    return reader.read(folder)


OLD, NEW = ({"versions": f"dgl {v}, torch 2.1, python 3.{v[0]}"} for v in ("1.1", "2.5"))
ON_GPU = {"device": "cuda"}


@pytest.mark.parametrize(
    ("before", "after", "gpu", "words"),
    [
        (OLD, NEW, "H100", "dgl is 1.1 in A, 2.5 in B"),
        ({"versions": "python 3.11"}, {"versions": "python 3.12"}, "H100", ""),
        (OLD, {}, "H100", ""),
        (ON_GPU, ON_GPU, "H200", "its GPU is H100 in A, H200 in B"),
        (ON_GPU, ON_GPU, "H100", ""),
        (ON_GPU, ON_GPU, "", ""),
        ({}, {}, "H200", ""),
    ],
)
def test_pairs_of_other_versions_or_another_gpu_are_not_pooled(tmp_path, before, after, gpu, words):
    a = with_gpu(run(tmp_path / "a", [(before, RATIOS)]), "H100")
    b = with_gpu(run(tmp_path / "b", [(after, scaled(0.5))]), gpu)
    (cell,) = compared(compare(a, b))
    if words:
        assert (cell.verdict, cell.change, cell.regression) == ("not judged", None, False)
    else:
        assert (cell.verdict, cell.regression) == ("slower", True)
    assert words in cell.reason


def test_pairs_over_references_of_other_versions_are_not_pooled(tmp_path):
    def of_version(name, version):
        folder = run(tmp_path / name, [({}, RATIOS)])
        table = folder / "cells.csv"
        rows = reader.read(folder).cells
        rows[0].versions = f"pyg-lib {version}"
        writer.write_csv(table, schema.CELLS, rows)
        return reader.read(folder)

    (cell,) = compared(compare(of_version("a", "0.4"), of_version("b", "0.5")))
    assert cell.verdict == "not judged"
    assert "the reference's pyg-lib is 0.4 in A, 0.5 in B" in cell.reason


@pytest.mark.parametrize("nested", [False, True])
def test_another_implementation_is_matched_and_not_compared(tmp_path, nested):
    def recipe(number):
        stage = {"name": "cache", **({"implementation": number} if number > 1 else {})}
        return {"features": {"name": "match", "table": stage} if nested else stage}

    a = run(tmp_path / "a", [({"id": "x", "recipe": json.dumps(recipe(1))}, RATIOS)])
    b = run(tmp_path / "b", [({"id": "y", "recipe": json.dumps(recipe(2))}, scaled(0.5))])
    (cell,) = compared(compare(reader.read(a), reader.read(b)))
    assert (cell.verdict, cell.change, cell.regression) == ("incomparable", None, False)
    path = "features.table" if nested else "features"
    assert f"{path} is implementation 1 in A, 2 in B" in cell.reason


def test_a_failed_cell_of_another_definition_matches_though_it_knows_no_pick(tmp_path):
    a = run(tmp_path / "a", [({}, RATIOS)])
    b = run(tmp_path / "b", [({"id": "q", "pick": "default", "status": "timeout"}, ())])
    (cell,) = compared(compare(reader.read(a), reader.read(b)))
    assert (cell.verdict, cell.regression) == ("incomparable", True)


def test_without_samples_nothing_is_judged(tmp_path):
    a = run(tmp_path / "a", [({}, RATIOS)], samples=False)
    b = run(tmp_path / "b", [({}, scaled(0.5))])
    (cell,) = compared(compare(reader.read(a), reader.read(b)))
    assert (cell.verdict, cell.reason) == ("not judged", "fewer than 3 pairs: 0 in A, 5 in B")


def test_another_machine_is_warned_of(tmp_path):
    a = run(tmp_path / "a", [({}, RATIOS)], versions={"torch": "1"})
    b = run(tmp_path / "b", [({}, RATIOS)], machine="m2", versions={"torch": "2"})
    warnings = compare(reader.read(a), reader.read(b)).warnings
    assert any("different machines" in w for w in warnings)
    assert any("torch: 1, 2" in w for w in warnings)


def test_other_versions_of_an_environment_are_warned_of(tmp_path):
    def environments(torch):
        return {"old": {"native": "", "versions": {"torch": torch, "python": "3.10.1"}}}

    a = reader.read(run(tmp_path / "a", [({}, RATIOS)], environments=environments("1")))
    b = reader.read(run(tmp_path / "b", [({}, RATIOS)], environments=environments("2")))
    assert compare(a, b).warnings == ["environment 'old' had other versions (torch: 1, 2)"]
    c = reader.read(run(tmp_path / "c", [({}, RATIOS)]))
    assert compare(a, a).warnings == compare(a, c).warnings == []


def test_formats(tmp_path):
    a = run(tmp_path / "a", [({}, RATIOS), ({"system": "y"}, RATIOS)])
    b = run(tmp_path / "b", [({}, scaled(0.5))])
    comparison = compare(reader.read(a), reader.read(b))
    text = compare_text.markdown(comparison)
    assert text.startswith("d, until compute, gcn")
    assert text.splitlines()[3].count("---") == text.splitlines()[4].count(" | ") + 1
    assert "- only in A: y" in text
    _, first, second = csv.DictReader(io.StringIO(compare_text.to_csv(comparison)))
    assert (first["verdict"], first["regression"]) == ("slower", "True")
    assert "only in A" in second["reason"]
    assert json.loads(json.dumps(comparison.to_json()))["regression"] is True


def command(monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["gnnbench", "compare", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code, *capsys.readouterr()


def test_the_command_ends_with_five_on_a_regression(tmp_path, monkeypatch, capsys):
    a = run(tmp_path / "a", [({}, RATIOS)])
    b = run(tmp_path / "b", [({}, scaled(0.8))])
    code, out, err = command(monkeypatch, capsys, a, b)
    assert (code, err) == (5, "")
    assert "slower" in out and "0.800x" in out
    code, out, _ = command(monkeypatch, capsys, a, b, "--margin", "0.5", "--format", "json")
    assert (code, json.loads(out)["cells"][1]["verdict"]) == (0, "unclear")
    assert command(monkeypatch, capsys, b, a, "--format", "markdown")[0] == 0
    assert command(monkeypatch, capsys, a, b, "--format", "csv")[0] == 5
    assert command(monkeypatch, capsys, a, b, "--fail-on", "slower", "--json")[0] == 5
    code, out, _ = command(monkeypatch, capsys, a, b, "--fail-on", "never", "--json")
    assert (code, json.loads(out)["regression"]) == (0, True)
    assert command(monkeypatch, capsys, b, a, "--fail-on", "slower")[0] == 0
    assert command(monkeypatch, capsys, a, b, "--fail-on", "faster")[0] == 2
    crashed = run(tmp_path / "crashed", [({"status": "unstable"}, RATIOS)])
    code, _, err = command(monkeypatch, capsys, a, crashed)
    assert (code, err) == (3, "gnnbench: no cell could be judged\n")
    assert command(monkeypatch, capsys, a, crashed, "--fail-on", "never")[0] == 0
    code, out, err = command(monkeypatch, capsys, a, tmp_path)
    assert (code, out) == (2, "") and "cells.csv" in err
