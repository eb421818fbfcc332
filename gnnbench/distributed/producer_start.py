"""Starts the producer's process, which imports torch at the same time as its parent."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from dataclasses import dataclass
from multiprocessing.connection import Connection

from gnnbench.core import bootstrap
from gnnbench.distributed import mps

PRODUCER = "gnnbench.distributed.producer"


@dataclass(frozen=True)
class StartedProducer:
    """A process that waits for ``BuildProducer``.

    It ends with the connection or with the thread that started it.
    """

    process: subprocess.Popen[bytes]
    connection: Connection[object, object]


def start(share: int = mps.WHOLE) -> StartedProducer:
    """Start a producer; below 100 MPS grants it ``share`` percent of a GPU's processors."""
    ours, theirs = socket.socketpair()
    arguments = {"parent": os.getpid(), "socket": theirs.fileno()}
    with theirs:
        process = subprocess.Popen(
            [*bootstrap.command(sys.executable, PRODUCER), json.dumps(arguments)],
            stdin=subprocess.DEVNULL,
            env=mps.environment(share),
            pass_fds=[theirs.fileno()],
        )
    return StartedProducer(process, Connection(ours.detach()))
