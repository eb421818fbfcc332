"""C++ tests of the shared headers and of the parts of the CPU library that do not need torch."""

import os
import shutil
import subprocess

import pytest
from kept import NATIVE, compiled


@pytest.mark.parametrize(
    ("source", "parts", "lines"),
    [
        ("test_headers.cpp", [], ["ok   floyd 9 of 20", "ok   ranks in a set"]),
        ("test_capacity.cpp", [], ["ok   each attempt fits one more hop"]),
        ("test_workspace.cpp", ["workspace.cpp"], ["ok   a large piece evicts others from the"]),
        ("test_team.cpp", ["team.cpp"], ["ok   a step ends when all of its workers end"]),
        ("test_gather.cpp", ["gather.cpp", "stream.cpp"], ["ok   cached: the first invalid id is"]),
        (
            "test_ceilings.cpp",
            ["ceilings.cpp"],
            ["ok   128 bits: every multiply-add of every lane is counted"],
        ),
        ("test_floyd.cpp", ["floyd.cpp"], ["ok   AVX2: picks equal those of single rows"]),
        ("test_pgsampler.cpp", ["pgsampler.cpp"], ["ok   failed allocations raise errors in the"]),
    ],
)
def test_native_tests_pass(source: str, parts: list[str], lines: list[str]) -> None:
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler to build native/tests with")
    sources = [next((NATIVE / "cpu").rglob(part)) for part in parts]
    flags = ["-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread"]
    flags.append("-Wno-maybe-uninitialized")  # from GCC 12's AVX-512 headers
    include = [f"-I{NATIVE / 'include'}", f"-I{NATIVE}"]
    sources.append(NATIVE / "tests" / source)
    build = [compiler, *flags, *include, *sources]
    program = compiled(
        source, compiler, build, sources, lambda to: subprocess.run([*build, "-o", to], check=True)
    )
    done = subprocess.run([program], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(line in done.stdout for line in lines)
