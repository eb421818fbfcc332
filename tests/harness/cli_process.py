"""Run the command line in a separate process."""

import os
import subprocess
import sys

from fakes import fake_environment


def start(*words, cwd, **env):
    return subprocess.Popen(
        [sys.executable, "-m", "gnnbench.cli", *words],
        cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, **fake_environment(), **env},
    )  # fmt: skip


def call(*words, cwd, **env):
    process = start(*words, cwd=cwd, **env)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


RUN = ("run", "breakdown", "--profile", "smoke", "-o", "reference=fake", "--repeats", "1")
