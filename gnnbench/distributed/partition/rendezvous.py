"""Forms the process group of ranks with equal commands, before any graph is loaded."""

from __future__ import annotations

import os
import platform
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta

import torch
import torch.distributed as dist

from gnnbench.core.errors import CellsFailedError, UsageError
from gnnbench.core.peer_failure import is_lost
from gnnbench.datasets.prepare import prepared_folder
from gnnbench.datasets.store.layout import read_meta
from gnnbench.distributed.partition.stored import known_digest
from gnnbench.measure.machine import source_digest
from gnnbench.version import __version__

TIMEOUT_S = 45.0
# The host then waits for each NCCL call until the group's timeout and raises. Without it, a thread
# of torch ends the process.
_BLOCKING_WAIT = "TORCH_NCCL_BLOCKING_WAIT"


_NO_INTERFACE = re.compile(r"Unable to find address for: (\S+)")


@contextmanager
def meeting(
    definition: Mapping[str, object], *, backend: str = "gloo", timeout: float = TIMEOUT_S
) -> Iterator[tuple[int, int]]:
    """Join the process group that the variables of torchrun describe; yields (rank, ranks).

    Without these variables the group has this process alone. A rank that ends, or that does not
    answer for ``timeout`` seconds, ends the others.

    Args:
        definition: values that must be equal on all ranks, by name: graph, fanouts, epochs ...
            None is a value that a rank does not know; it equals any other. The versions of
            gnnbench, torch and Python are added, and a digest of gnnbench's Python sources.
        backend: of ``torch.distributed``. With ``nccl`` the host waits for each call.
        timeout: seconds that each call waits for the other ranks, including the first call.

    Raises:
        UsageError: the ranks differ, which each rank reports; or the address is wrong: a port in
            use, an unknown interface or host.
        CellsFailedError: another rank cannot be reached, ended, or did not answer in time.
    """
    limit, alone = timedelta(seconds=timeout), "RANK" not in os.environ
    if not alone:
        _check_variables()
    try:
        try:
            with _default_variable(_BLOCKING_WAIT, "1"):
                if alone:
                    dist.init_process_group(
                        backend, timeout=limit, store=dist.HashStore(), rank=0, world_size=1
                    )
                else:
                    dist.init_process_group(backend, timeout=limit)
            _agree(definition)
            yield dist.get_rank(), dist.get_world_size()
        except BaseException:
            if backend == "nccl":  # abort calls that wait for missing ranks
                with suppress(Exception):
                    if (group := dist.group.WORLD) is not None:
                        group.abort()
            raise
        finally:
            if dist.is_initialized():
                dist.destroy_process_group()
    except Exception as error:
        if cause := _cause(error):
            raise UsageError(cause) from error
        if not is_lost(error):
            raise
        names = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
        rank, ranks, address, port = (os.environ.get(name, "?") for name in names)
        raise CellsFailedError(
            f"rank {rank} of {ranks} lost the others (rendezvous at {address}:{port}): one ended,"
            f" was never started, or did not answer for {timeout:g} s; read the output of each"
            f" rank (torch: {next(iter(str(error).splitlines()), '')})"
        ) from error


def _cause(error: Exception) -> str:
    """Return the fault of the rendezvous address that torch's error names, else ""."""
    port, text = os.environ.get("MASTER_PORT", ""), str(error)
    if "EADDRINUSE" in text or "already in use" in text:
        return f"port {port} is in use by another program; set MASTER_PORT to a free one"
    if interface := _NO_INTERFACE.search(text):
        return (
            f"there is no network interface '{interface[1]}' with an address, which"
            " GLOO_SOCKET_IFNAME names; set it to one that 'ip address' lists"
        )
    return ""


def _check_variables() -> None:
    """Raise ``UsageError`` for variables with which this rank can never join the others.

    Torch would retry a host name without an address until its timeout.
    """
    names = ("RANK", "WORLD_SIZE", "MASTER_PORT")
    values = {name: os.environ.get(name, "") for name in names}
    for name, value in values.items():
        if not (value.isascii() and value.isdigit()):
            raise UsageError(f"{name} is '{value}'; set it to a number, as torchrun does")
    rank, ranks, port = (int(value) for value in values.values())
    if rank >= ranks:
        raise UsageError(
            f"RANK is {rank} and WORLD_SIZE is {ranks}; RANK must be smaller than WORLD_SIZE"
        )
    if port >= 1 << 16:
        raise UsageError(f"MASTER_PORT is {port}; set it to a port up to 65535")
    address = os.environ.get("MASTER_ADDR", "")
    try:
        socket.getaddrinfo(address or "?", port)
    except (OSError, UnicodeError) as unknown:
        why = getattr(unknown, "strerror", None) or str(unknown)
        raise UsageError(f"MASTER_ADDR '{address}' has no address ({why}); correct it") from None


def contents(dataset: str, methods: Sequence[str], seed: int) -> dict[str, str | None]:
    """Return digests of this host's graph and of its partition by each method, one part a rank.

    For a ``definition``, before anything is loaded. None: the host has not made it yet.
    """
    parts, folder = int(os.environ.get("WORLD_SIZE", "1")), prepared_folder(dataset)
    digests: dict[str, str | None] = {"the graph's checksum": None}
    if folder is not None:
        digests["the graph's checksum"] = str(read_meta(folder).get("meta_sha256"))
    for method in methods:
        known = None if folder is None else known_digest(folder, parts, method, seed)
        digests[f"the partition by {method}"] = known
    return digests


def _agree(definition: Mapping[str, object]) -> None:
    """Raise ``UsageError`` on every rank unless all have the same definition and versions."""
    mine = {"gnnbench": __version__, "torch": torch.__version__}
    mine["Python"] = ".".join(platform.python_version_tuple()[:2])
    # Without the native libraries, which each host may have built itself.
    mine["gnnbench's Python sources"] = source_digest(native=False)
    mine |= {key: repr(value) for key, value in definition.items() if value is not None}
    unknown = {key for key, value in definition.items() if value is None}
    empty: tuple[dict[str, str], set[str]] = ({}, set())
    gathered = [empty] * dist.get_world_size()
    dist.all_gather_object(gathered, (mine, unknown))
    for key in dict.fromkeys(key for values, _ in gathered for key in values):
        by_rank = {
            rank: values.get(key, "nothing")
            for rank, (values, unknown) in enumerate(gathered)
            if key not in unknown
        }
        first = min(by_rank)
        for rank, value in by_rank.items():
            if value != by_rank[first]:
                raise UsageError(
                    f"rank {rank} differs from rank {first} in {key}: {value} instead of"
                    f" {by_rank[first]}; start all ranks with the same"
                )


@contextmanager
def _default_variable(variable: str, value: str) -> Iterator[None]:
    """Set an environment variable within the block, unless the user has set it."""
    before = os.environ.get(variable)
    os.environ.setdefault(variable, value)
    try:
        yield
    finally:
        if before is None:
            del os.environ[variable]
