"""Somebody else's system, found through its own installed distribution and run beside ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULE = '''
"""A system of a stranger: the baseline with another name."""

from gnnbench.systems.baseline import Baseline


class ThirdParty(Baseline):
    name = "thirdparty"
    summary = "a stranger's system"
    devices = ("cpu",)
'''
BROKEN = """
import a_package_that_nobody_has
"""


@pytest.fixture
def installed(tmp_path: Path):
    """Install two distributions where only this test's processes look, as pip leaves them."""
    site = tmp_path / "site"

    def install(distribution: str, module: str, text: str, entry: str) -> None:
        site.mkdir(exist_ok=True)
        (site / f"{module}.py").write_text(text)
        info = site / f"{distribution}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1\n")
        (info / "entry_points.txt").write_text(f"[gnnbench.systems]\n{entry}\n")

    install("stranger", "stranger_gnn", MODULE, "thirdparty = stranger_gnn:ThirdParty")
    install("broken_stranger", "broken_gnn", BROKEN, "brokenparty = broken_gnn:System")
    return site


def gnnbench(site: Path, cwd: Path, *words: str) -> tuple[int, str, str]:
    paths = [str(site), str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "GNNBENCH_DATA": str(cwd / "store"),
    }
    environment.pop("GNNBENCH_EXTRA_SYSTEMS", None)  # the entry point alone must do
    process = subprocess.run(
        [sys.executable, "-m", "gnnbench.cli", *words],
        cwd=cwd, env=environment, capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip
    return process.returncode, process.stdout, process.stderr


def test_it_is_listed_and_so_is_a_broken_one(installed: Path, tmp_path: Path) -> None:
    code, out, err = gnnbench(installed, tmp_path, "list", "--json")
    assert (code, err) == (0, "")
    systems = {s["name"]: s for s in json.loads(out)["systems"]}
    assert systems["thirdparty"]["summary"] == "a stranger's system"
    assert systems["brokenparty"]["runs on"] == "nothing"
    assert "a_package_that_nobody_has" in systems["brokenparty"]["missing"]
    assert {"baseline", "dgl", "pyg"} <= set(systems)
    code, out, _ = gnnbench(installed, tmp_path, "list")
    assert code == 0
    assert "thirdparty" in out
    code, _, err = gnnbench(tmp_path / "elsewhere", tmp_path, *RUN, "--systems", "thirdparty")
    assert code == 2
    assert "unknown system 'thirdparty'" in err


RUN = (
    "run", "breakdown", "--profile", "smoke", "--repeats", "2", "--datasets", "mine",
    "-o", "batch_size=64", "-o", "fanouts=[3,2]", "--json",
)  # fmt: skip


def test_it_runs_beside_ours_on_an_imported_graph(installed: Path, tmp_path: Path) -> None:
    edges = [f"{u}\t{(u * 7 + k * k) % 900}\n" for u in range(900) for k in range(1, 6)]
    (tmp_path / "edges.tsv").write_text("# source\ttarget\n" + "".join(edges))
    words = ("data", "import", "edges.tsv", "--name", "mine", "--symmetric", "--features", "8")
    code, _, err = gnnbench(installed, tmp_path, *words)
    assert (code, err) == (0, "")
    code, out, err = gnnbench(
        installed, tmp_path, *RUN, "--systems", "baseline,thirdparty,brokenparty"
    )
    assert code == 6, err  # a system that was named is missing
    assert "Traceback" not in out + err
    rows = {row["system"]: row for row in json.loads(out)["cells"]}
    assert set(rows) == {"baseline", "thirdparty", "brokenparty"}
    ours, theirs, broken = (rows[s] for s in ("baseline", "thirdparty", "brokenparty"))
    assert ours["dataset"] == theirs["dataset"] == "mine"
    for row in (ours, theirs):
        assert row["status"] in ("ok", "unstable"), row["reason"]
        assert row["epoch_wall_s"] > 0
    assert ours["sampled_edges"] == theirs["sampled_edges"] > 0
    assert broken["status"] == "missing_dep"
    assert "a_package_that_nobody_has" in broken["reason"]
