"""SIGKILL at random instants: 4 in the suite, ``GNNBENCH_KILLS=200`` for the full count."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

KILLS = int(os.environ.get("GNNBENCH_KILLS", "4"))


@pytest.mark.timeout(60 + 10 * KILLS)
def test_no_finished_cell_is_lost_to_kill_nine(tmp_path):
    script = Path(__file__).parent / "kills.py"
    done = subprocess.run(
        [sys.executable, str(script), str(KILLS), str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout.splitlines()[-1])
    assert summary["kills"] == KILLS
    assert summary["campaigns"] >= 1
