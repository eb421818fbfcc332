"""Where ranks meet before anything is loaded: all alike, or refused with a sentence."""

from __future__ import annotations

import os
import platform
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

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
# A call of NCCL's is then waited for by the host, no longer than the group's timeout, and raises;
# else a thread of torch's ends the process.
_WAITS = "TORCH_NCCL_BLOCKING_WAIT"


_INTERFACE = re.compile(r"Unable to find address for: (\S+)")


@contextmanager
def meeting(
    definition: Mapping[str, Any], *, backend: str = "gloo", timeout: float = TIMEOUT_S
) -> Iterator[tuple[int, int]]:
    """The process group that torchrun, or who else sets its variables, describes: rank, ranks.

    Without them one of this process alone. A rank that is lost, or that does not answer for
    ``timeout`` seconds, ends the others.

    Args:
        definition: what must be the same on all ranks, by name: graph, fanouts, epochs ...; None
            is what a rank does not know, and no difference. Versions of gnnbench, torch and Python
            are added, and a digest of gnnbench's Python sources.
        backend: of ``torch.distributed``. With ``nccl`` the host waits for each call.
        timeout: seconds that any call waits for the other ranks, the first one, too.

    Raises:
        UsageError: the ranks differ, and each one learns who differs in what; or the place where
            they are to meet is wrong: a port in use, an unknown interface or address.
        CellsFailedError: another rank cannot be reached, ended, or did not answer in time.
    """
    how: dict[str, Any] = {"timeout": timedelta(seconds=timeout)}
    if "RANK" not in os.environ:
        how |= {"store": dist.HashStore(), "rank": 0, "world_size": 1}
    else:
        _check_variables()
    try:
        try:
            with _set(_WAITS, "1"):
                dist.init_process_group(backend, **how)
            _agree(definition)
            yield dist.get_rank(), dist.get_world_size()
        except BaseException:
            if backend == "nccl":  # what waits for ranks that do not come is not waited for
                whole: Any = dist.group.WORLD
                with suppress(Exception):
                    whole.abort()
            raise
        finally:
            if dist.is_initialized():
                dist.destroy_process_group()
    except Exception as error:
        if cause := _cause(error):
            raise UsageError(cause) from error
        if not is_lost(error):
            raise
        told = {key: os.environ.get(key, "?") for key in ("RANK", "WORLD_SIZE")}
        where = ":".join(os.environ.get(f"MASTER_{what}", "?") for what in ("ADDR", "PORT"))
        raise CellsFailedError(
            f"rank {told['RANK']} of {told['WORLD_SIZE']} lost the others (they meet at {where}):"
            f" one ended, was never started, or did not answer for {timeout:g} s; look at what each"
            f" of them says (torch: {next(iter(str(error).splitlines()), '')})"
        ) from error


def _cause(error: Exception) -> str:
    """What is wrong with where the ranks are to meet, if torch's error says it; else ""."""
    port, text = os.environ.get("MASTER_PORT", ""), str(error)
    if "EADDRINUSE" in text or "already in use" in text:
        return f"port {port} is in use by another program; set MASTER_PORT to a free one"
    if found := _INTERFACE.search(text):
        return (
            f"there is no network interface '{found[1]}' with an address, which"
            " GLOO_SOCKET_IFNAME names; set it to one that 'ip address' lists"
        )
    return ""


def _check_variables() -> None:
    """Raise ``UsageError`` at once for variables with which this rank can never meet the others.

    Torch would try a host name that has no address again until its timeout.
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
    """What this host has of a graph, and of its partition into as many parts as there are ranks by
    each method, before anything is loaded: for a ``definition``. None: it is not made here yet.
    """
    parts, folder = int(os.environ.get("WORLD_SIZE", "1")), prepared_folder(dataset)
    found: dict[str, str | None] = {"the graph's checksum": None}
    if folder is not None:
        found["the graph's checksum"] = str(read_meta(folder).get("meta_sha256"))
    for method in methods:
        known = None if folder is None else known_digest(folder, parts, method, seed)
        found[f"the partition by {method}"] = known
    return found


def _agree(definition: Mapping[str, Any]) -> None:
    """Raise ``UsageError`` on every rank unless all have the same definition and versions."""
    mine = {"gnnbench": __version__, "torch": torch.__version__}
    mine["Python"] = ".".join(platform.python_version_tuple()[:2])
    # Not the libraries: each host may have built its own of them.
    mine["gnnbench's Python sources"] = source_digest(native=False)
    mine |= {key: repr(value) for key, value in definition.items() if value is not None}
    unknown = {key for key, value in definition.items() if value is None}
    found: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(found, (mine, unknown))
    for key in dict.fromkeys(key for theirs, _ in found for key in theirs):
        knows = [rank for rank, (_, not_known) in enumerate(found) if key not in not_known]
        told = {rank: found[rank][0].get(key, "nothing") for rank in knows}
        first = min(told)
        for rank, other in told.items():
            if other != told[first]:
                raise UsageError(
                    f"rank {rank} differs from rank {first} in {key}: {other} instead of"
                    f" {told[first]}; start all ranks with the same"
                )


@contextmanager
def _set(variable: str, value: str) -> Iterator[None]:
    """The environment with a variable that nobody has set."""
    asked = os.environ.get(variable)
    os.environ.setdefault(variable, value)
    try:
        yield
    finally:
        if asked is None:
            del os.environ[variable]
