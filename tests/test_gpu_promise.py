"""Where a GPU is promised, a GPU test that is skipped for any reason fails the run."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = """
import pytest

@pytest.mark.gpu
def test_skips():
    pytest.skip("some reason")

def test_of_the_cpu_skips():
    pytest.skip("another")

@pytest.mark.gpu(count=2)
def test_of_two():
    raise AssertionError
"""


def run(folder: Path, promised: str, missing: str) -> subprocess.CompletedProcess[str]:
    conftest = Path(__file__).with_name("conftest.py").read_text()
    stub = f"def _gpu_missing(wanted): return {missing} if wanted == 1 else 'needs 2 GPUs'"
    (folder / "conftest.py").write_text(f"{conftest}\n\n{stub}\n")
    for helper in ("kept.py", "warm.py"):
        (folder / helper).write_text(Path(__file__).with_name(helper).read_text())
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -ra\nmarkers =\n  gpu: needs a GPU\n")
    (folder / "test_it.py").write_text(TESTS)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", str(folder)],
        env={**os.environ, "GNNBENCH_REQUIRE_GPU": promised},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_a_skip_is_a_failure_where_a_gpu_is_promised(tmp_path):
    done = run(tmp_path, "1", "None")
    assert done.returncode == 1, done.stdout
    assert "1 failed, 2 skipped" in done.stdout and "gpu: needs 2 GPUs" in done.stdout
    assert "a GPU test was skipped" in done.stdout and "some reason" in done.stdout


def test_a_missing_gpu_fails_at_once_where_it_is_promised(tmp_path):
    done = run(tmp_path, "1", "'no CUDA device'")
    assert done.returncode == 4, done.stdout
    assert "GPU tests cannot run: no CUDA device" in done.stderr + done.stdout


def test_elsewhere_skips_are_skips(tmp_path):
    done = run(tmp_path, "0", "'no CUDA device'")
    assert done.returncode == 0, done.stdout
    assert "3 skipped" in done.stdout and "need a GPU machine" in done.stdout
