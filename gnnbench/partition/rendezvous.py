"""Where ranks meet before anything is loaded: all alike, or refused with a sentence."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from gnnbench.errors import CellsFailedError, UsageError
from gnnbench.version import __version__

TIMEOUT_S = 45.0
_ALONE = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}


@contextmanager
def meeting(
    definition: Mapping[str, Any], *, backend: str = "gloo", timeout: float = TIMEOUT_S
) -> Iterator[tuple[int, int]]:
    """The process group that torchrun, or who else sets its variables, describes: rank, ranks.

    Without them one of this process alone. A rank that is lost, or that does not answer for
    ``timeout`` seconds, ends the others.

    Args:
        definition: what must be the same on all ranks, by name: graph, fanouts, epochs ...;
            versions of gnnbench, torch and Python are added.
        backend: of ``torch.distributed``.
        timeout: seconds that any call waits for the other ranks, the first one, too.

    Raises:
        UsageError: the ranks differ; each rank is told who differs in what.
        CellsFailedError: another rank cannot be reached, ended, or did not answer in time.
    """
    if "RANK" not in os.environ:
        os.environ |= _ALONE
    try:
        dist.init_process_group(backend, timeout=timedelta(seconds=timeout))
        try:
            _agree(definition)
            yield dist.get_rank(), dist.get_world_size()
        finally:
            dist.destroy_process_group()
    except (dist.DistError, RuntimeError) as error:
        if not _is_of_group(error):
            raise
        where = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        raise CellsFailedError(
            f"rank {os.environ['RANK']} of {os.environ['WORLD_SIZE']} lost the others (they meet at"
            f" {where}): one ended, was never started, or did not answer for {timeout:g} s; look"
            " at what each of them says"
        ) from error


def _agree(definition: Mapping[str, Any]) -> None:
    """Raise ``UsageError`` on every rank unless all have the same definition and versions."""
    mine = {key: repr(value) for key, value in definition.items()}
    mine |= {"gnnbench": __version__, "torch": torch.__version__}
    mine["Python"] = ".".join(platform.python_version_tuple()[:2])
    found: list[dict[str, str]] = [{}] * dist.get_world_size()
    dist.all_gather_object(found, mine)
    for rank, theirs in enumerate(found):
        for key in [*mine, *(k for k in theirs if k not in mine)]:
            first, other = (d.get(key, "nothing") for d in (found[0], theirs))
            if first != other:
                raise UsageError(
                    f"rank {rank} differs from rank 0 in {key}: {other} instead of {first}; start"
                    " all ranks with the same"
                )


def _is_of_group(error: Exception) -> bool:
    """Whether an error is one of torch.distributed's: gloo's are plain ``RuntimeError``."""
    text = str(error)
    words = ("gloo", "TCPStore", "recvValue", "connectFullMesh", "Connection closed", "Timed out")
    return isinstance(error, dist.DistError) or any(word in text for word in words)
