"""What keeps ranks from meeting is named: port, interface, host, rank and number of ranks."""

import os
import socket
import subprocess
import sys

import pytest
import torch.distributed as dist

from gnnbench.core import bootstrap
from gnnbench.core.errors import CellsFailedError, UsageError
from gnnbench.distributed.partition import rendezvous

MEETS = """
from gnnbench.core.errors import GnnbenchError
from gnnbench.distributed.partition.rendezvous import meeting
try:
    with meeting({}, timeout=1): print("met")
except GnnbenchError as error:
    print(type(error).__name__, error)
"""


@pytest.fixture
def rank(monkeypatch):
    """A function that sets the variables of a rank, by default of rank 0 of 1 at a free port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
    names = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "GLOO_SOCKET_IFNAME")

    def set_all(**own):
        values = dict(zip(names, ("0", "1", "127.0.0.1", port, "lo"), strict=True)) | own
        for name, value in values.items():
            monkeypatch.setenv(name, value)
        return values

    return set_all


def refused(error, match):
    with pytest.raises(error, match=match), rendezvous.meeting({}, timeout=1.0):
        pass
    assert not dist.is_initialized()


@pytest.mark.parametrize(
    ("own", "match"),
    [
        ({"GLOO_SOCKET_IFNAME": "bogus0"}, "no network interface 'bogus0'"),
        ({"MASTER_ADDR": "nosuch.invalid"}, "MASTER_ADDR 'nosuch.invalid' has no address"),
        ({"MASTER_ADDR": "a" * 70}, "has no address"),
        ({"RANK": "1", "MASTER_ADDR": ""}, "RANK is 1 and WORLD_SIZE is 1"),
        ({"RANK": "x"}, "RANK is 'x'; set"),
        ({"RANK": "-1"}, "RANK is '-1'; set"),
        ({"WORLD_SIZE": ""}, "WORLD_SIZE is ''; set"),
        ({"WORLD_SIZE": "0"}, "RANK is 0 and WORLD_SIZE is 0"),
        ({"MASTER_PORT": "99999"}, "MASTER_PORT is 99999"),
        ({"MASTER_PORT": "http"}, "MASTER_PORT is 'http'"),
    ],
)
def test_variables_that_cannot_be(rank, own, match):
    rank(**own)
    refused(UsageError, match)


def test_a_port_in_use(rank):
    with socket.create_server(("127.0.0.1", 0)) as server:
        rank(WORLD_SIZE="2", MASTER_PORT=str(server.getsockname()[1]))
        refused(UsageError, r"port \d+ is in use by another program")


def test_nobody_listens(rank):
    rank(RANK="1", WORLD_SIZE="2")
    refused(CellsFailedError, r"rank 1 of 2 lost the others .*client socket has timed out")


def test_ranks_of_another_number(rank):
    """Rank 0 waits for three ranks, and rank 1 for two: both end and say so."""
    values = rank(WORLD_SIZE="3")
    own = ({}, {"RANK": "1", "WORLD_SIZE": "2"})
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", bootstrap._KNOWN + MEETS, str(bootstrap.PACKAGE)],
            stdout=subprocess.PIPE, text=True,
            env={**os.environ, **values, **mine},
        )
        for mine in own
    ]  # fmt: skip
    said = [one.communicate(timeout=120)[0] for one in ranks]
    assert all(text.startswith("CellsFailedError") for text in said), said
    assert all("(torch: " in text for text in said)


def test_one_rank_meets_itself(rank):
    rank()
    with rendezvous.meeting({}, timeout=20.0) as who:
        assert who == (0, 1)
