import shutil

from gnnbench.claims.claim import choose
from gnnbench.claims.report import DOCUMENT, ROOT, report


def test_the_document_is_what_the_claims_and_the_committed_runs_say():
    assert (ROOT / DOCUMENT).read_text() == report(ROOT), "run 'python -m gnnbench.claims.report'"


def test_every_claim_is_told_of_and_other_results_are_another_document(tmp_path):
    run = ROOT / "results" / "reference" / "xeon-2-threads" / "match-degree"
    shutil.copytree(run, tmp_path / "results" / "reference" / "run")
    text = report(tmp_path)
    assert all(f"| `{c.id}` | {c.says} |" in text for c in choose())
    assert text != report(ROOT)
