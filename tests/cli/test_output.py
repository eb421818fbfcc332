"""Errors of standard output are reported in one sentence."""

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
def test_full_disk_is_reported(words):
    with FULL.open("w") as full:
        result = subprocess.run(
            [sys.executable, "-m", "gnnbench.cli", *words],
            stdout=full, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
    assert result.returncode == 2 and result.stderr.count("\n") == 1
    assert result.stderr.startswith("gnnbench: standard output cannot be written (No space left")


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
def test_earlier_error_is_reported_instead_of_the_full_disk():
    with FULL.open("w") as full:
        result = subprocess.run(
            [sys.executable, "-m", "gnnbench.cli", "show", "nosuch"],
            stdout=full, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
    assert result.returncode == 2 and "'nosuch' is no run" in result.stderr


class Failing:
    """A stream whose writes raise ``error``."""

    name = "<stderr>"

    def __init__(self, error):
        self.error = error

    def write(self, text):
        raise self.error

    flush = isatty = lambda self: self.write("")


def test_guarded_stream_reports_errors_but_not_a_closed_pipe():
    stream = terminal.Guarded(Failing(OSError(5, "Input/output error")))
    for call in (lambda: stream.write("x"), stream.flush, terminal.unguarded(stream).flush):
        with pytest.raises(OutputError, match="standard error cannot be written"):
            call()
    with pytest.raises(BrokenPipeError):
        terminal.Guarded(Failing(BrokenPipeError())).write("x")
