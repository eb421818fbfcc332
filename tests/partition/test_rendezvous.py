"""Where ranks meet: those that differ are refused, one that does not come ends the others."""

import os
import re
import socket
import subprocess
import sys
import time

import pytest
import torch.distributed as dist

from gnnbench.errors import CellsFailedError, UsageError
from gnnbench.partition import rendezvous

TRAIN = [sys.executable, "-m", "gnnbench.partition.example", "ogbn_arxiv~twin@0.01"]
TRAIN += ["--methods", "random", "--fanouts", "3,2", "--batch-size", "64", "--hidden", "8"]


@pytest.fixture
def place(monkeypatch, tmp_path_factory):
    """Variables of rank 0 of a group of two, at a port that is free."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    told = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    told["GNNBENCH_DATA"] = str(tmp_path_factory.getbasetemp() / "commands")
    told["OMP_NUM_THREADS"] = "1"
    for name, value in told.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(
    ("own", "told"),
    [
        (["--epochs", "2"], "epochs: 2 instead of 1"),
        (["--methods", "contiguous"], "methods: 'contiguous' instead of 'random'"),
    ],
)
def test_ranks_that_differ_are_refused_with_a_sentence(place, own, told):
    ranks = [
        subprocess.Popen(
            [*TRAIN, *(own if rank else [])],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "RANK": str(rank)},
        )
        for rank in range(2)
    ]
    for rank in ranks:
        _, error = rank.communicate(timeout=120)
        assert rank.returncode == UsageError.exit_code
        assert error.endswith(
            f"gnnbench: rank 1 differs from rank 0 in {told}; start all ranks with the same\n"
        )


def test_who_does_not_come_is_not_waited_for_longer_than_said(place):
    told = re.escape("rank 0 of 2 lost the others (they meet at 127.0.0.1:")
    with (
        pytest.raises(CellsFailedError, match=told + r"\d+\): .* did not answer for 1 s"),
        rendezvous.meeting({}, timeout=1.0),
    ):
        pass
    assert not dist.is_initialized()


@pytest.mark.parametrize("what", ["gnnbench", "torch", "Python"])
def test_another_version_is_refused(place, monkeypatch, what):
    monkeypatch.setenv("WORLD_SIZE", "1")

    def gathered(found, mine):
        found[:] = [mine, {**mine, what: "0.0"}]

    monkeypatch.setattr(dist, "all_gather_object", gathered)
    with (
        pytest.raises(UsageError, match=rf"^rank 1 differs from rank 0 in {what}: 0\.0 instead of"),
        rendezvous.meeting({"graph": "a"}),
    ):
        pass
    assert not dist.is_initialized()


def test_those_who_agree_go_on(place, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "1")
    with rendezvous.meeting({"graph": "a"}) as found:
        assert found == (0, 1) and dist.is_initialized()
    assert not dist.is_initialized()


def test_an_error_of_the_block_is_its_own(place, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "1")
    with pytest.raises(RuntimeError, match=r"^mine$"), rendezvous.meeting({}):
        raise RuntimeError("mine")
    assert not dist.is_initialized()


def test_a_killed_rank_ends_the_other_with_a_sentence(place):
    ranks = [
        subprocess.Popen(
            [*TRAIN, "--epochs", "100000"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "RANK": str(rank)},
        )
        for rank in range(2)
    ]
    time.sleep(8)  # they train by now, or are on the way to it
    ranks[1].kill()
    ranks[1].wait()
    _, error = ranks[0].communicate(timeout=60)
    assert ranks[0].returncode == CellsFailedError.exit_code, error
    assert "gnnbench: rank 0 of 2 lost the others (they meet at 127.0.0.1:" in error
