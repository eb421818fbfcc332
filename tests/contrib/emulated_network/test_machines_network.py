"""Namespaces that are made, shaped and removed; what cannot be made is told."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from emulated import NAME, needs_root
from two_processes import alive

from gnnbench.contrib.emulated_network import link, network
from gnnbench.contrib.emulated_network.network import Network
from gnnbench.core.errors import MissingError, UsageError

COMMAND = [sys.executable, "-P", "-m", "gnnbench.contrib.emulated_network"]


def gone(name=NAME, within=30.0):
    """Whether a network is gone, or goes, within some seconds."""
    until = time.monotonic() + within
    while network.namespaces(name) and time.monotonic() < until:
        time.sleep(0.1)
    return not network.namespaces(name)


@needs_root
def test_a_network_is_made_and_removed_and_nothing_else_is_touched():
    before = subprocess.check_output(["ip", "-br", "link"])
    network.make(Network(3, 1.0, name=NAME))
    assert sorted(network.namespaces(NAME)) == [f"{NAME}-{i}" for i in ("1", "2", "3", "switch")]
    lines = network.status(NAME)
    assert [line["machine"] for line in lines] == [f"{NAME}-1", f"{NAME}-2", f"{NAME}-3"]
    assert [line["address"] for line in lines] == ["10.99.0.1", "10.99.0.2", "10.99.0.3"]
    assert {line["link"] for line in lines} == {"1Gbit"}
    assert {line["processes"] for line in lines} == {"0"}
    assert subprocess.check_output(["ip", "-br", "link"]) == before
    with pytest.raises(UsageError, match=f"there is a network '{NAME}' of 4 namespaces already"):
        network.make(Network(2, 1.0, name=NAME))
    assert network.remove(NAME) == 4
    assert network.namespaces(NAME) == [] and network.status(NAME) == []
    assert network.remove(NAME) == 0
    assert subprocess.check_output(["ip", "-br", "link"]) == before


@needs_root
def test_links_are_shaped_both_ways_and_counted():
    with network.made(Network(2, 0.1, name=NAME)) as there:
        for sender, receiver in ((0, 1), (1, 0)):
            before = [network.counters(n) for n in there.namespaces]
            # Never faster than the link; a busy machine may well be slower.
            assert 0 < link.measured(there, 0.2, sender, receiver) < 0.1
            after = [network.counters(n) for n in there.namespaces]
            sent = after[sender][0] - before[sender][0]
            received = after[receiver][1] - before[receiver][1]
            payload = 6 << 20  # 2 MiB ahead and 4 that are timed, of at least 4
            assert payload < sent < 1.1 * payload and payload < received < 1.1 * payload


@needs_root
def test_what_is_half_made_is_removed(monkeypatch):
    shape = network._shape

    def fail(there, namespace, interface):
        if namespace.endswith("-2"):
            raise KeyboardInterrupt
        shape(there, namespace, interface)

    monkeypatch.setattr(network, "_shape", fail)
    with pytest.raises(KeyboardInterrupt):
        network.make(Network(2, 1.0, name=NAME))
    assert network.namespaces(NAME) == []


@needs_root
def test_of_two_makers_of_a_name_the_second_takes_nothing_from_the_first(monkeypatch):
    """Also where neither saw the other's when it looked."""
    right = network.namespaces
    looks = iter([[]])
    with network.made(Network(2, 1.0, name=NAME)) as there:
        inside = subprocess.Popen(["ip", "netns", "exec", there.namespaces[0], "sleep", "1000"])
        monkeypatch.setattr(network, "namespaces", lambda name: next(looks, right(name)))
        with pytest.raises(UsageError, match=f"there is a network '{NAME}' of 3 namespaces"):
            network.make(Network(2, 1.0, name=NAME))
        monkeypatch.undo()
        assert len(network.namespaces(NAME)) == 3 and inside.poll() is None
    assert inside.wait(10) != 0


@needs_root
@pytest.mark.parametrize("after", ["switch", "2"])
def test_a_maker_that_is_killed_at_once_leaves_nothing(after):
    """It has made a first namespace, or the last one."""
    run = subprocess.Popen([*COMMAND, "make", "--name", NAME], stdout=subprocess.DEVNULL)
    there, until = Path(f"/run/netns/{NAME}-{after}"), time.monotonic() + 30
    while not there.exists() and time.monotonic() < until:
        pass
    run.kill()
    assert there.exists() and run.wait(30) == -signal.SIGKILL
    assert gone()


@needs_root
def test_a_delay_that_the_kernel_cannot_make_is_told(monkeypatch):
    run = network._run

    def without_netem(words):
        if "netem" in words:
            raise UsageError("Specified qdisc kind is unknown")
        return run(words)

    monkeypatch.setattr(network, "_run", without_netem)
    with pytest.raises(MissingError, match="no netem, which a delay takes; leave the delay out"):
        network.make(Network(2, 1.0, delay=5.0, name=NAME))
    assert network.namespaces(NAME) == []


@needs_root
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_stopped_run_leaves_nothing(sign):
    run = subprocess.Popen([*COMMAND, "run", "--name", NAME, "--", "sleep", "1000"])
    until, inside = time.monotonic() + 30, []
    while len(inside) != 2 and time.monotonic() < until:  # more while they are being started
        time.sleep(0.05)
        inside = [p for i in (1, 2) for p in network.processes(f"{NAME}-{i}")]
    assert len(inside) == 2
    run.send_signal(sign)
    run.wait(30)
    assert gone()
    assert not any(map(alive, inside))


@needs_root
def test_a_command_that_fails_ends_all(capfd):
    begun = time.monotonic()
    words = [
        "sh",
        "-c",
        "echo {rank} of {machines} at {address}; [ {rank} = 0 ] || exit 3; sleep 1000",
    ]
    done = subprocess.run(
        [*COMMAND, "run", "--name", NAME, "--machines", "3", "--", *words],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 3
    assert "0 of 3 at 10.99.0.1" in done.stdout
    assert done.stderr.startswith("gnnbench: machine ")
    assert done.stderr.endswith(" ended with exit status 3; all others were ended\n")
    assert time.monotonic() - begun < 60 and gone()


def test_only_root_makes_networks(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(network.shutil, "which", lambda tool: f"/sbin/{tool}")
    for what in (lambda: network.make(Network(2, 1.0, name=NAME)), lambda: network.remove(NAME)):
        with pytest.raises(MissingError, match="made by root alone; run the command as root"):
            what()
    monkeypatch.setattr(network.shutil, "which", lambda tool: None)
    assert network.missing() == "there is no command 'ip'; install iproute2"


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"machines": 0}, "machines must be 1 to 250, not 0"),
        ({"rate": 0.0}, "rate must be 0.001 to 1000 Gbit/s, not 0"),
        ({"delay": -1.0}, "delay must be 0 to 10000 ms, not -1"),
        ({"name": "a b"}, "'a b' is no name of a network"),
    ],
)
def test_wrong_numbers_are_told(wrong, told):
    with pytest.raises(UsageError, match=told):
        Network(**{"machines": 2, "rate": 1.0, **wrong})
