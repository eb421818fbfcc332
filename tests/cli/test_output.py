"""Where standard output cannot be written, a command says so in one sentence."""

import subprocess
import sys
from pathlib import Path

import pytest

from gnnbench.core import terminal
from gnnbench.core.errors import OutputError

RUN = str(Path(__file__).parents[2] / "results" / "reference" / "xeon-2-threads" / "transitivity")
FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    "words",
    [("--help",), ("show", RUN)],
)
def test_a_full_disk_is_named(words):
    with FULL.open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "gnnbench.cli", *words],
            stdout=full, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert done.stderr.startswith("gnnbench: standard output cannot be written (No space left")


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
def test_another_error_comes_before_the_full_disk():
    with FULL.open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "gnnbench.cli", "show", "nosuch"],
            stdout=full, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
    assert done.returncode == 2 and "'nosuch' is no run" in done.stderr


class Failing:
    name = "<stderr>"

    def __init__(self, error):
        self.error = error

    def write(self, text):
        raise self.error

    flush = isatty = lambda self: self.write("")


def test_a_guarded_stream_names_the_problem_and_passes_on_a_closed_pipe():
    stream = terminal.Guarded(Failing(OSError(5, "Input/output error")))
    for call in (lambda: stream.write("x"), stream.flush, terminal.unguarded(stream).flush):
        with pytest.raises(OutputError, match="standard error cannot be written"):
            call()
    with pytest.raises(BrokenPipeError):
        terminal.Guarded(Failing(BrokenPipeError())).write("x")
