"""The producer's process, as it is started: it imports torch while its parent still does."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from dataclasses import dataclass
from multiprocessing.connection import Connection

from gnnbench.core import bootstrap

PRODUCER = "gnnbench.distributed.producer"
SHARE = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"


@dataclass(frozen=True)
class Started:
    """A process that waits to be told what to build, and ends with the connection or with the
    thread that started it."""

    process: subprocess.Popen[bytes]
    connection: Connection


def start(share: int) -> Started:
    """Start one; below 100 MPS gives it ``share`` percent of a GPU's processors."""
    ours, theirs = socket.socketpair()
    variables = dict(os.environ)
    if share < 100:
        variables[SHARE] = str(share)
    told = {"parent": os.getpid(), "socket": theirs.fileno()}
    with theirs:
        process = subprocess.Popen(
            [*bootstrap.command(sys.executable, PRODUCER), json.dumps(told)],
            stdin=subprocess.DEVNULL,
            env=variables,
            pass_fds=[theirs.fileno()],
        )
    return Started(process, Connection(ours.detach()))
