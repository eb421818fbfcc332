"""Certificates: files, look-up by runs, exit codes, programs of failures, the generated page."""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from gnnbench.certification import certify as certifying
from gnnbench.certification import isolated, lookup, report, text
from gnnbench.certification.inputs import stars
from gnnbench.certification.isolated import certify_isolated
from gnnbench.certification.laws import outcomes, trace_law, visit_law
from gnnbench.certification.plan import QUICK
from gnnbench.certification.planted import PlantedSubject
from gnnbench.certification.properties import PROPERTIES
from gnnbench.certification.record import ABSENT, FAILS, PASSES, Certificate, Entry, load
from gnnbench.certification.rows import outcome_tables
from gnnbench.certification.snippets import fault_snippet, table_snippet
from gnnbench.certification.structure import find_faults
from gnnbench.certification.subject import SUCCESSIVE, Request
from gnnbench.certification.subjects import subject_of
from gnnbench.core.cell import Cell
from gnnbench.core.errors import MissingError, UsageError
from gnnbench.statistics.work_class import drawn_class
from gnnbench.validation.law import BY_WEIGHT, WITH, WITHOUT

ROOT = Path(__file__).parents[2]
COMMITTED = ROOT / "results" / "certificates"
TINY = replace(
    QUICK, copies=8, calls=8, hub_copies=1, hub_calls=2, pairs=60, epochs=2, batches=2,
    workers=False,
)  # fmt: skip
pytestmark = pytest.mark.usefixtures("one_thread")


def certificate(*entries: Entry, **changes: object) -> Certificate:
    known = Certificate(
        "dgl", "1.1.3", "cpu", {}, WITHOUT, {"dgl": "1.1.3", "torch": "2"}, False, 2, "dgl",
        {"fused": True, "id_type": "int64", "pick": "dgl", "topology": "cpu"}, list(entries),
    )  # fmt: skip
    return replace(known, **changes)


def cell(**options: object) -> Cell:
    sampler = {"name": "dgl", "fused": True, "id_type": "int64", "pick": "dgl", **options}
    return Cell("e", "dgl", "d", "", until="sample", recipe={"sampler": sampler})


def test_laws_sum_to_one_and_have_known_values():
    for law, count in ((WITHOUT, 10), (WITH, 15), (BY_WEIGHT, 15), (SUCCESSIVE, 10)):
        known = outcomes(law, 5, 2)
        assert known.codes.size == count and known.law.sum() == pytest.approx(1)
    weighted = outcomes(SUCCESSIVE, 3, 2, [2.0, 1.0, 1.0])
    by_places = {tuple(weighted.places(i)): p for i, p in enumerate(weighted.law)}
    # {0, 1}: first 0 then 1, or first 1 then 0.
    assert by_places[0, 1] == pytest.approx(0.5 * 0.5 + 0.25 * 2 / 3)
    zero = outcomes(BY_WEIGHT, 3, 1, [1.0, 0.0, 3.0])
    assert {tuple(zero.places(i)): p for i, p in enumerate(zero.law)} == {(0,): 0.25, (2,): 0.75}


def test_laws_of_walks():
    graph = certifying.structure_inputs(torch.int64, wide=False)[4].graph  # a circle, degree 2
    traces = trace_law(graph, 0, 2)
    assert len(traces) == 4 and set(traces.values()) == {0.25}
    visits = visit_law(graph, 0, 1, 2, 0.5)
    assert sum(visits.values()) == pytest.approx(1)
    # Step 2 starts at the destination with probability 1/2 and repeats the first node with 1/4.
    assert visits[((1, 2),)] == pytest.approx(0.5 * 0.5 * 0.5)


def lines_of(made: Certificate) -> list[str]:
    from rich.console import Console

    from gnnbench.core.console import _table

    rows = text.rows(made)
    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    console.print(_table(list(rows[0]), rows))
    return [line.rstrip() for line in console.export_text().splitlines()]


def test_dgl_int32_fused_fails_with_a_program(tmp_path: Path):
    subject = subject_of("dgl", "cpu", {"id_type": "int32"})
    inputs = certifying.structure_inputs(torch.int64, wide=False)[:5]
    faults, _ = find_faults(subject, inputs, ((1,), (3,)))
    assert faults, "DGL 1.1.3's fused sampler is wrong with int32 ids"
    program = fault_snippet(subject, next(iter(faults.values())))
    assert "gnnbench" not in program and "call" in run_program(program, tmp_path)
    assert find_faults(subject_of("dgl", "cpu", {"fused": False}), inputs, ((1,), (3,)))[0] == {}


def test_torch_sparse_is_uneven_and_its_program_shows_it(tmp_path: Path):
    pytest.importorskip("torch_sparse")
    subject = subject_of("pyg", "cpu", {"extension": "torch-sparse"})
    given = stars((2, 3), 64)
    request = Request(given.graph, (1,), WITHOUT, "pyg", 1)
    (two, _) = outcome_tables(subject, request, given.seeds, 4)
    assert two.counts.tolist() == [256, 0, 0] and two.log_evidence > 100
    program = table_snippet(subject, two)
    assert "gnnbench" not in program
    out = run_program(program, tmp_path).splitlines()
    assert "[0] 2000 1000.0" in out and "[1] 0 1000.0" in out


def test_program_of_a_library_sampler_runs(tmp_path: Path):
    subject = subject_of("hop-by-hop", "cpu", {})
    given = stars((3,), 8)
    request = Request(given.graph, (2,), WITHOUT, "floyd", 1)
    (table,) = outcome_tables(subject, request, given.seeds, 2)
    out = run_program(table_snippet(subject, table), tmp_path)
    assert sum(int(line.rsplit(maxsplit=2)[1]) for line in out.splitlines()[1:]) == 2000


def run_program(program: str, folder: Path) -> str:
    """Output of a program in a process that has what recent setuptools lack for DGL 1.1.3."""
    assert program
    path = folder / "program.py"
    path.write_text(program)
    start = "from gnnbench.kernels.dgl_import import import_dgl; import runpy, sys\n"
    start += "'import dgl' in open(sys.argv[1]).read() and import_dgl()\n"
    start += "runpy.run_path(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", start, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_failed_certificate_makes_the_work_different(tmp_path: Path):
    wrong = Entry("subsets", FAILS, f"law:{WITHOUT}", "drawn too often")
    certificate(wrong, Entry("workers", FAILS, "workers", "equal")).save(tmp_path)
    versions = {"dgl": "1.1.3"}
    standing = lookup.standing_of(cell(), WITHOUT, versions, [tmp_path])
    assert standing is not None and standing.file == "dgl-1.1.3-cpu.json"
    assert standing.reason == "its certificate fails 'subsets': drawn too often"
    loader = lookup.standing_of(cell(workers=2), WITHOUT, versions, [tmp_path])
    assert loader is not None and "and 1 more" in loader.reason
    other_law = lookup.standing_of(cell(), WITH, versions, [tmp_path])
    assert other_law is not None and other_law.reason == ""


def test_gate_records_the_certificate_of_a_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from types import SimpleNamespace

    from gnnbench.harness.reduce.cells import _add_check_remarks
    from gnnbench.harness.trial_gate import _add_certificate
    from gnnbench.schema import CellRow

    certificate(Entry("workers", FAILS, "workers", "equal")).save(tmp_path)
    monkeypatch.setattr(lookup, "folders", lambda: [tmp_path])
    reports = {
        cell(**o).id: {"setup": {"versions": {"dgl": "1.1.3"}}} for o in ({}, {"workers": 2})
    }
    context = SimpleNamespace(journal=SimpleNamespace(reports=reports))
    remarks = []
    for one in (cell(), cell(workers=2)):
        check = {"law": WITHOUT, "details": {}}
        _add_certificate(context, one, check)
        reports[one.id]["check"] = check
        row = CellRow(id=one.id)
        _add_check_remarks(row, context.journal)
        remarks.append(row.remark)
    file = "dgl-1.1.3-cpu.json"
    assert remarks == [
        f"certificate: {file}, which fails in what this run does not use (workers)",
        f"different work: its certificate fails 'workers': equal ({file})",
    ]


def test_certificate_of_another_version_or_option_is_not_used(tmp_path: Path):
    certificate(Entry("subsets", PASSES)).save(tmp_path)
    (tmp_path / "empty").mkdir()
    assert lookup.standing_of(cell(), WITHOUT, {"dgl": "2.1"}, [tmp_path]) is None
    assert lookup.standing_of(cell(fused=False), WITHOUT, {"dgl": "1.1.3"}, [tmp_path]) is None
    assert lookup.standing_of(cell(), WITHOUT, {"dgl": "1.1.3"}, [tmp_path / "empty"]) is None
    on_gpu = replace(cell(topology="gpu"), device="cuda")
    assert lookup.standing_of(on_gpu, WITHOUT, {"dgl": "1.1.3"}, [tmp_path]) is None
    from_host = replace(cell(topology="cpu"), device="cuda")
    assert lookup.standing_of(from_host, WITHOUT, {"dgl": "1.1.3"}, [tmp_path]) is not None
    gathering = replace(cell(), fanouts=())
    assert lookup.standing_of(gathering, WITHOUT, {"dgl": "1.1.3"}, [tmp_path]) is None


def test_work_class_of_an_uncertified_sampler():
    check = {
        "dtype": "", "digest": "d", "frontier": "new", "law": WITHOUT, "edges_per_seed": 1.0,
        "nodes_per_seed": 1.0, "details": {},
    }  # fmt: skip
    assert drawn_class(check, check) == "identical"
    assert drawn_class(check, {**check, "details": {"uncertified": "it fails"}}) == "different"


def test_program_for_wholegraph_is_python():
    from gnnbench.certification.wholegraph_subject import PROGRAM

    names = compile(PROGRAM.format(memory="continuous", ids="int32"), "program", "exec").co_names
    assert {"wgth", "graph", "draw"} <= set(names)


def test_unknown_and_missing_samplers():
    with pytest.raises(UsageError, match="no sampler or system 'dlg'"):
        subject_of("dlg", "cpu", {})
    with pytest.raises(MissingError, match="cugraph-pyg"):
        subject_of("cugraph-pyg", "cpu", {})


def test_command_writes_the_certificate_of_a_library_sampler(said, tmp_path: Path, monkeypatch):
    from gnnbench.certification import plan

    monkeypatch.setattr(plan, "QUICK", TINY)
    arguments = ("certify", "fused-map", "--quick", "-q", "--option", "pick=floyd", "--json")
    code, out, _ = said(*arguments, "--out", str(tmp_path))
    (printed,) = json.loads(out)
    assert code == 0 and printed["options"] == {"pick": "floyd"}
    (path,) = tmp_path.iterdir()
    assert path.name == "fused-map-0.1.0-cpu-pick=floyd-quick.json"
    made = load(path)
    assert made.failed == []
    assert [e.name for e in made.entries] == list(PROPERTIES)
    assert load(made.save(tmp_path / "again")) == made
    assert all(len(line) <= 80 for line in lines_of(made))


def test_command_ends_with_4_if_a_property_fails(said, tmp_path: Path, monkeypatch):
    entries = [Entry("counts", FAILS, reason="3 edges, not 4")]
    made = certifying.certificate_of(PlantedSubject("fewer_edges", 0.2), TINY, entries)
    monkeypatch.setattr(isolated, "certify_isolated", lambda *_: made)
    code, out, err = said("certify", "planted", "-q", "--out", str(tmp_path))
    assert code == 4 and "counts fails: 3 edges, not 4" in out
    assert "1 of 1 certificates fail" in err


@pytest.fixture
def fragile(monkeypatch):
    from gnnbench.core import registry

    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    monkeypatch.setenv("GNNBENCH_EXTRA_SYSTEMS", "fragile=fragile_sampler:SYSTEM")
    registry.entries.cache_clear()
    yield
    registry.entries.cache_clear()
    sys.modules.pop("fragile_sampler", None)


@pytest.mark.parametrize(
    "how,reason", [("raises", "RuntimeError: logic error"), ("ends", "its process (SIGSEGV)")]
)
def test_a_failure_leaves_other_properties_alone(fragile, how, reason, monkeypatch):
    """After an error the sampler raises for everything, so a new process tests what follows."""
    monkeypatch.setenv("FRAGILE", how)
    forks = multiprocessing.get_context("fork")  # has imported what a new one takes seconds for
    monkeypatch.setattr(isolated.multiprocessing, "get_context", lambda _: forks)
    plan = replace(TINY, copies=2, calls=2, pairs=20, wide=False)
    made = certify_isolated("fragile", "cpu", {}, plan)
    (failed,) = made.failed
    assert failed.name == "int32_ids" and reason in failed.reason
    assert [e.name for e in made.entries] == list(PROPERTIES)


def test_command_refuses_an_option_without_value(said, tmp_path: Path):
    code, _, err = said("certify", "dgl", "--option", "fused", "--out", str(tmp_path))
    assert code == 2 and "KEY=VALUE" in err


def test_command_refuses_a_folder_that_cannot_be_made_before_it_draws(said, tmp_path: Path):
    (tmp_path / "file").write_text("")
    code, out, err = said("certify", "fused-map", "--out", str(tmp_path / "file" / "folder"))
    assert code == 2 and out == "" and str(tmp_path / "file") in err


def test_page_is_generated_from_the_committed_certificates(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["report", "--folder", str(COMMITTED)])
    report.main()
    assert capsys.readouterr().out == (ROOT / "docs" / "certificates.md").read_text()


def test_committed_certificates_fail_where_samplers_are_known_to_be_wrong():
    by_file = {c.file_name: {e.name for e in c.failed} for c in map(load, COMMITTED.glob("*.json"))}
    assert by_file["dgl-1.1.3-cpu-id_type=int32.json"] >= {"edges", "local_ids"}
    assert by_file["pyg-2.8.1-cpu-extension=torch-sparse.json"] >= {"subsets", "inclusion"}
    assert by_file["pyg-2.8.1-cpu.json"] == set()
    assert by_file["hop-by-hop-0.1.0-cpu.json"] == set()
    # It raises an error for a batch whose seeds have no edge.
    assert by_file["cugraph-pyg-26.10.0-cuda.json"] == {"readable", "int32_ids"}


def test_program_is_printed_by_file_and_property():
    file = "pyg-2.8.1-cpu-extension=torch-sparse.json"
    assert "torch_geometric" in report.program_of(COMMITTED, file, "subsets")
    with pytest.raises(UsageError, match="has no program for 'edges'"):
        report.program_of(COMMITTED, file, "edges")


def test_plug_in_is_certified_by_the_digest_of_its_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The sampler of docs/own-sampler.md, which cannot take all neighbours."""
    from gnnbench.core import registry

    page = (ROOT / "docs" / "own-sampler.md").read_text()
    (tmp_path / "certified_plugin.py").write_text(page.split("```python\n")[1].split("```")[0])
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("GNNBENCH_EXTRA_SYSTEMS", "my_sampler=certified_plugin:SYSTEM")
    registry.entries.cache_clear()
    try:
        subject = subject_of("my_sampler", "cpu", {})
        entries = {e.name: e for e in certifying.structure(subject, TINY)}
    finally:
        registry.entries.cache_clear()
        sys.modules.pop("certified_plugin", None)
    assert len(subject.packages["my_sampler"]) == 16
    assert {e.verdict for e in entries.values()} == {PASSES, ABSENT}
    assert "refuses fanout -1" in entries["all_neighbours"].reason
