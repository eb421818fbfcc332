"""C++ tests of the shared headers, compiled for the host without torch."""

import os
import shutil
import subprocess

import pytest
from kept import NATIVE, compiled


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("test_headers.cpp", ["ok   floyd 9 of 20", "ok   places in a set"]),
        ("test_capacity.cpp", ["ok   one hop more fits each time"]),
    ],
)
def test_native_header_tests_pass(source: str, lines: list[str]) -> None:
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler to build native/tests with")
    flags = ["-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{NATIVE / 'include'}"]
    path = NATIVE / "tests" / source
    build = [compiler, *flags, path]
    program = compiled(
        source, compiler, build, [path], lambda to: subprocess.run([*build, "-o", to], check=True)
    )
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert all(line in done.stdout for line in lines)
