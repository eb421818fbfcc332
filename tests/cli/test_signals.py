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
def test_signal_interrupts_the_command(number):
    process = start_waiting()
    process.send_signal(number)
    _, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (130, "gnnbench: interrupted\n")


def test_ignored_hangup_stays_ignored():
    process = start_waiting("signal.signal(signal.SIGHUP, signal.SIG_IGN)")
    process.send_signal(signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=0.5)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 130


def test_exit_code_is_kept_if_the_terminal_is_closed():
    parent_end, child_end = os.openpty()
    process = start_waiting(stderr=child_end)
    os.close(child_end)
    os.close(parent_end)
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=60)
    assert process.returncode == 130


def test_closed_pipe_is_not_an_error():
    """The output is longer than a buffer, so that a write fails during the command."""
    parent_end, child_end = os.pipe()
    os.close(parent_end)
    result = subprocess.run(
        [sys.executable, "-m", "gnnbench", "list", "experiments", "--json"],
        stdout=child_end, stderr=subprocess.PIPE, text=True, timeout=120,
    )  # fmt: skip
    os.close(child_end)
    assert (result.returncode, result.stderr) == (0, "")


def test_closed_standard_output_is_not_an_internal_error():
    result = subprocess.run(
        ["sh", "-c", '"$0" -m gnnbench --version >&-', sys.executable],
        stderr=subprocess.PIPE, text=True, timeout=120,
    )  # fmt: skip
    assert "internal error" not in result.stderr and "Traceback" not in result.stderr
