"""Signals that end the command line: one sentence, exit code 130, and no traceback."""

import os
import signal
import subprocess
import sys

import pytest

COMMAND = """
import signal, time
from gnnbench import cli

@cli.app.command()
def wait():
    print("ready", flush=True)
    time.sleep(60)

{before}
cli.main()
"""


def start_waiting(before="", **streams):
    """Start a command that waits for a signal, once it is ready."""
    code = COMMAND.format(before=before)
    process = subprocess.Popen(
        [sys.executable, "-c", code, "wait"], stdout=subprocess.PIPE, text=True,
        **{"stderr": subprocess.PIPE, **streams},
    )  # fmt: skip
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_interrupts_the_command(number):
    process = start_waiting()
    process.send_signal(number)
    _, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (130, "gnnbench: interrupted\n")


def test_nohup_is_respected():
    process = start_waiting("signal.signal(signal.SIGHUP, signal.SIG_IGN)")
    process.send_signal(signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=0.5)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 130


def test_a_closed_terminal_leaves_the_exit_code():
    """Nobody can read the message."""
    ours, theirs = os.openpty()
    process = start_waiting(stderr=theirs)
    os.close(theirs)
    os.close(ours)
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=60)
    assert process.returncode == 130


def test_a_closed_pipe_is_no_failure():
    """More is printed than a buffer holds, so that a write fails in the middle of the command."""
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run(
        [sys.executable, "-m", "gnnbench", "list", "experiments", "--json"],
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
