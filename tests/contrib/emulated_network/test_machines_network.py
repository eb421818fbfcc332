"""Emulated networks: creation, traffic shaping, removal and errors."""

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


def is_removed(name=NAME, within=30.0):
    """Whether a network is removed within some seconds."""
    deadline = time.monotonic() + within
    while network.namespaces(name) and time.monotonic() < deadline:
        time.sleep(0.1)
    return not network.namespaces(name)


@needs_root
def test_network_is_created_and_removed_without_other_changes():
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
    with network.made(Network(2, 0.1, name=NAME)) as emulated:
        for sender, receiver in ((0, 1), (1, 0)):
            before = [network.counters(n) for n in emulated.namespaces]
            # Never faster than the link; a busy machine may well be slower.
            assert 0 < link.measured(emulated, 0.2, sender, receiver) < 0.1
            after = [network.counters(n) for n in emulated.namespaces]
            sent = after[sender][0] - before[sender][0]
            received = after[receiver][1] - before[receiver][1]
            payload = 6 << 20  # 2 MiB of warm-up and at least 4 MiB timed
            assert payload < sent < 1.1 * payload and payload < received < 1.1 * payload


@needs_root
def test_partly_created_network_is_removed(monkeypatch):
    shape = network._shape

    def fail(emulated, namespace, interface):
        if namespace.endswith("-2"):
            raise KeyboardInterrupt
        shape(emulated, namespace, interface)

    monkeypatch.setattr(network, "_shape", fail)
    with pytest.raises(KeyboardInterrupt):
        network.make(Network(2, 1.0, name=NAME))
    assert network.namespaces(NAME) == []


@needs_root
def test_second_network_of_a_name_does_not_change_the_first(monkeypatch):
    """Even if the first check did not see the first network."""
    original = network.namespaces
    listings = iter([[]])
    with network.made(Network(2, 1.0, name=NAME)) as emulated:
        inside = subprocess.Popen(["ip", "netns", "exec", emulated.namespaces[0], "sleep", "1000"])
        monkeypatch.setattr(network, "namespaces", lambda name: next(listings, original(name)))
        with pytest.raises(UsageError, match=f"there is a network '{NAME}' of 3 namespaces"):
            network.make(Network(2, 1.0, name=NAME))
        monkeypatch.undo()
        assert len(network.namespaces(NAME)) == 3 and inside.poll() is None
    assert inside.wait(10) != 0


@needs_root
@pytest.mark.parametrize("after", ["switch", "2"])
def test_killed_make_command_leaves_no_namespaces(after):
    """It is killed after the first or the last namespace."""
    run = subprocess.Popen([*COMMAND, "make", "--name", NAME], stdout=subprocess.DEVNULL)
    emulated, deadline = Path(f"/run/netns/{NAME}-{after}"), time.monotonic() + 30
    while not emulated.exists() and time.monotonic() < deadline:
        pass
    run.kill()
    assert emulated.exists() and run.wait(30) == -signal.SIGKILL
    assert is_removed()


@needs_root
def test_delay_without_kernel_support_is_an_error(monkeypatch):
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
def test_signalled_run_leaves_no_processes_and_namespaces(sign):
    run = subprocess.Popen([*COMMAND, "run", "--name", NAME, "--", "sleep", "1000"])
    deadline, inside = time.monotonic() + 30, []
    while len(inside) != 2 and time.monotonic() < deadline:  # temporarily more during start
        time.sleep(0.05)
        inside = [p for i in (1, 2) for p in network.processes(f"{NAME}-{i}")]
    assert len(inside) == 2
    run.send_signal(sign)
    run.wait(30)
    assert is_removed()
    assert not any(map(alive, inside))


@needs_root
def test_failing_command_ends_all_machines(capfd):
    started = time.monotonic()
    words = [
        "sh",
        "-c",
        "echo {rank} of {machines} at {address}; [ {rank} = 0 ] || exit 3; sleep 1000",
    ]
    result = subprocess.run(
        [*COMMAND, "run", "--name", NAME, "--machines", "3", "--", *words],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert result.returncode == 3
    assert "0 of 3 at 10.99.0.1" in result.stdout
    assert result.stderr.startswith("gnnbench: machine ")
    assert result.stderr.endswith(" ended with exit status 3; all others were ended\n")
    assert time.monotonic() - started < 60 and is_removed()


def test_networks_need_root(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(network.shutil, "which", lambda tool: f"/sbin/{tool}")
    for call in (lambda: network.make(Network(2, 1.0, name=NAME)), lambda: network.remove(NAME)):
        with pytest.raises(MissingError, match="made by root alone; run the command as root"):
            call()
    monkeypatch.setattr(network.shutil, "which", lambda tool: None)
    assert network.missing() == "there is no command 'ip'; install iproute2"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"machines": 0}, "machines must be 1 to 250, not 0"),
        ({"rate": 0.0}, "rate must be 0.001 to 1000 Gbit/s, not 0"),
        ({"delay": -1.0}, "delay must be 0 to 10000 ms, not -1"),
        ({"name": "a b"}, "'a b' is no name of a network"),
    ],
)
def test_invalid_networks_are_refused(wrong, message):
    with pytest.raises(UsageError, match=message):
        Network(**{"machines": 2, "rate": 1.0, **wrong})
