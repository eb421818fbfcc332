"""Signals that end the command line: one sentence, exit code 130, and no traceback."""

import os
import signal
import subprocess
import sys

import pytest

# A command that waits in the place of 'gnnbench runs'.
WAITS = """
import signal, time
from gnnbench import cli

@cli.app.command()
def wait():
    print("ready", flush=True)
    time.sleep(60)

{before}
cli.main()
"""


def started(before="", **how):
    code = WAITS.format(before=before)
    process = subprocess.Popen(
        [sys.executable, "-c", code, "wait"], stdout=subprocess.PIPE, text=True,
        **{"stderr": subprocess.PIPE, **how},
    )  # fmt: skip
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_an_interruption(sign):
    process = started()
    process.send_signal(sign)
    _, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (130, "gnnbench: interrupted\n")


def test_nohup_is_respected():
    process = started("signal.signal(signal.SIGHUP, signal.SIG_IGN)")
    process.send_signal(signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=0.5)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 130


def test_a_terminal_that_is_gone():
    """Nobody can read the message then, and the exit code stays."""
    ours, theirs = os.openpty()
    process = started(stderr=theirs)
    os.close(theirs)
    os.close(ours)
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=60)
    assert process.returncode == 130


def test_a_reader_that_is_gone_is_no_failure():
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run(
        [sys.executable, "-m", "gnnbench", "list"],
        stdout=theirs, stderr=subprocess.PIPE, text=True, timeout=120,
    )  # fmt: skip
    os.close(theirs)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_closed_output_is_no_internal_error():
    done = subprocess.run(
        ["sh", "-c", '"$0" -m gnnbench --version >&-', sys.executable],
        stderr=subprocess.PIPE, text=True, timeout=120,
    )  # fmt: skip
    assert "internal error" not in done.stderr and "Traceback" not in done.stderr
