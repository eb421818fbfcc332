"""Rendezvous of ranks: ranks that differ are refused; a missing rank ends the others."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys

import pytest
import torch
import torch.distributed as dist

from gnnbench.core import bootstrap
from gnnbench.core.errors import CellsFailedError, UsageError
from gnnbench.datasets.importers.imported import import_source
from gnnbench.datasets.prepare import prepared_folder
from gnnbench.datasets.store.reader import open_graph
from gnnbench.distributed.partition import rendezvous
from gnnbench.distributed.partition.assignment import Partition
from gnnbench.distributed.partition.stored import save

TRAIN = [
    sys.executable,
    "-P",
    "-m",
    "gnnbench.distributed.partition.example",
    "ogbn_arxiv~twin@0.01",
]
TRAIN += ["--methods", "random", "--fanouts", "3,2", "--batch-size", "64", "--hidden", "8"]


@pytest.fixture
def place(monkeypatch, tmp_path_factory):
    """Variables of rank 0 of a group of two, at a port that is free."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    variables = {
        "RANK": "0",
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    variables["GNNBENCH_DATA"] = str(tmp_path_factory.getbasetemp() / "commands")
    variables["OMP_NUM_THREADS"] = "1"
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


def test_ranks_that_differ_are_refused_with_a_sentence(place):
    message = "rank 1 differs from rank 0 in epochs: 2 instead of 1; start all ranks with the same"
    ranks = [
        subprocess.Popen(
            [*TRAIN, *(("--epochs", "2") if rank else ())], stderr=subprocess.PIPE, text=True,
            env={**os.environ, "RANK": str(rank)},
        )
        for rank in range(2)
    ]  # fmt: skip
    for rank in ranks:
        _, error = rank.communicate(timeout=120)
        assert rank.returncode == UsageError.exit_code
        assert error.endswith(f"gnnbench: {message}\n")


def test_missing_rank_is_waited_for_until_the_timeout(place):
    message = re.escape("rank 0 of 2 lost the others (rendezvous at 127.0.0.1:")
    with (
        pytest.raises(CellsFailedError, match=message + r"\d+\): .* did not answer for 1 s"),
        rendezvous.meeting({}, timeout=1.0),
    ):
        pass
    assert not dist.is_initialized()


# Joins a group at each port, with one value changed in rank 1, and prints the error.
CHANGED = """
import os, platform, sys
import torch
from gnnbench.core.errors import UsageError
from gnnbench.distributed.partition import rendezvous

def changed(what):
    if what == "gnnbench": rendezvous.__version__ = "0.0"
    if what == "torch": torch.__version__ = "0.0"
    if what == "Python": platform.python_version_tuple = lambda: ("0", "0", "1")
    if what == "gnnbench's Python sources": rendezvous.source_digest = lambda native: "0.0"

rank = os.environ["RANK"]
for port, what in zip(sys.argv[1].split(), sys.argv[2:], strict=True):
    os.environ["MASTER_PORT"] = port
    before = dict(vars(rendezvous)), torch.__version__, platform.python_version_tuple
    if rank == "1":
        changed(what)
    try:
        with rendezvous.meeting({"graph": "a", "known": None if rank == "0" else 1}):
            print("met")
    except UsageError as error:
        print(error)
    vars(rendezvous).update(before[0])
    torch.__version__, platform.python_version_tuple = before[1:]
"""


def program(text):
    """Command of a Python program that imports this gnnbench."""
    return [sys.executable, "-c", bootstrap._KNOWN + text, str(bootstrap.PACKAGE)]


def free_ports(number):
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [str(server.getsockname()[1]) for server in servers]
    for server in servers:
        server.close()
    return ports


def run_two(words, own=({}, {})):
    """Run both ranks with their own variables; returns exit codes and outputs."""
    ranks = [
        subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "RANK": str(rank), **own[rank]},
        )
        for rank in range(2)
    ]  # fmt: skip
    outputs = [rank.communicate(timeout=120) for rank in ranks]
    return [(rank.returncode, *said) for rank, said in zip(ranks, outputs, strict=True)]


def test_another_version_or_source_is_refused(place):
    kinds = ["gnnbench", "torch", "Python", "gnnbench's Python sources", "nothing"]
    words = [*program(CHANGED), " ".join(free_ports(len(kinds))), *kinds]
    for code, out, error in run_two(words):
        assert code == 0, error
        *refused, met = out.splitlines()
        assert met == "met"
        for what, line in zip(kinds, refused, strict=False):
            assert line.startswith(f"rank 1 differs from rank 0 in {what}: 0.0 instead of ")
            assert line.endswith("; start all ranks with the same")


@pytest.fixture
def stores(tmp_path):
    """Folders of two hosts, each with a graph of the same name; edges of the second's differ."""
    roots = []
    for host, last in enumerate(("4 0", "4 1")):
        root = tmp_path / str(host)
        root.mkdir()
        edges = root / "edges.txt"
        edges.write_text(f"0 1\n1 2\n2 3\n3 4\n{last}\n")
        import_source(edges, "mine", seed=0, root=root)
        roots.append(root)
    return roots


def test_graphs_and_partitions_of_one_name_that_differ_are_named(place, stores, tmp_path):
    words = [*TRAIN, "--fanouts", "2"]
    words[words.index("ogbn_arxiv~twin@0.01")] = "mine"
    own = [{"GNNBENCH_DATA": str(root)} for root in stores]
    for code, _, error in run_two(words, own):
        assert code == UsageError.exit_code
        assert "rank 1 differs from rank 0 in the graph's checksum: '" in error, error
    same = tmp_path / "same"
    shutil.copytree(stores[0], same)
    for root, owners in ((stores[0], [0, 0, 0, 1, 1]), (same, [1, 0, 0, 1, 0])):
        graph = open_graph(prepared_folder("mine", root=root))
        save(graph, Partition.of_owners(torch.tensor(owners), 2, "random", 0))
    own[1]["GNNBENCH_DATA"] = str(same)
    for code, _, error in run_two(words, own):
        assert code == UsageError.exit_code
        assert "rank 1 differs from rank 0 in the partition by random: '" in error, error


def test_ranks_that_agree_form_a_group(place, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "1")
    with rendezvous.meeting({"graph": "a"}) as group:
        assert group == (0, 1) and dist.is_initialized()
    assert not dist.is_initialized()


def test_a_process_alone_needs_no_variables_and_leaves_none(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    before = dict(os.environ)
    with rendezvous.meeting({"graph": "a"}) as group:
        assert group == (0, 1) and dict(os.environ) == before
    assert dict(os.environ) == before


def test_host_waits_for_nccl_calls(place, monkeypatch):
    """Torch ends a process whose NCCL collective hangs, unless the host waits. Without a GPU this
    tests the variable that torch reads, and the translation of its error."""
    seen = []

    def hangs(backend, **how):
        seen.append((backend, os.environ["TORCH_NCCL_BLOCKING_WAIT"], how["timeout"].seconds))
        raise dist.DistBackendError("Watchdog caught collective operation timeout: WorkNCCL")

    monkeypatch.setattr(dist, "init_process_group", hangs)
    with (
        pytest.raises(CellsFailedError, match="did not answer for 7 s"),
        rendezvous.meeting({}, backend="nccl", timeout=7),
    ):
        pass
    assert seen == [("nccl", "1", 7)] and "TORCH_NCCL_BLOCKING_WAIT" not in os.environ


def test_an_error_of_the_block_is_its_own(place, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "1")
    with pytest.raises(RuntimeError, match=r"^mine$"), rendezvous.meeting({}):
        raise RuntimeError("mine")
    assert not dist.is_initialized()


# The training program, which kills itself in its second epoch.
DYING = """
import os, signal, sys
from gnnbench.distributed.partition import command, example
from gnnbench.distributed.partition.train import Trainer

def epoch(self, number, run=Trainer.epoch):
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return run(self, number)

Trainer.epoch = epoch
command.run(example.train)
"""


def test_killed_rank_is_reported_by_the_others(place):
    arguments = [*TRAIN[4:], "--epochs", "100000", "--timeout", "20"]
    ranks = [
        subprocess.Popen(
            [*words, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "RANK": str(rank)},
        )
        for rank, words in enumerate((TRAIN[:4], program(DYING)))
    ]  # fmt: skip
    errors = [rank.communicate(timeout=120)[1] for rank in ranks]
    assert ranks[1].returncode == -signal.SIGKILL, errors[1]
    assert ranks[0].returncode == CellsFailedError.exit_code, errors[0]
    assert "gnnbench: rank 0 of 2 lost the others (rendezvous at 127.0.0.1:" in errors[0]
