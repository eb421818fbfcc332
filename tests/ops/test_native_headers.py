"""The shared headers, compiled for the host without torch."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

NATIVE = Path(__file__).resolve().parents[2] / "native"


def test_shared_headers_hold_their_constants(tmp_path: Path) -> None:
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler to build native/tests with")
    program = tmp_path / "native_tests"
    source = NATIVE / "tests" / "test_headers.cpp"
    flags = ["-std=c++20", "-O1", "-Wall", "-Werror", f"-I{NATIVE / 'include'}"]
    subprocess.run([compiler, *flags, str(source), "-o", str(program)], check=True)
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "ok   floyd 9 of 20" in done.stdout
