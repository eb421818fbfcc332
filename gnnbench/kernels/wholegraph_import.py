"""NVIDIA's WholeGraph from its PyPI wheels: its communicator, one per process, and its memory."""

from __future__ import annotations

import importlib.util
import os
import socket
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar, Protocol

from gnnbench.core.errors import UnsupportedError
from gnnbench.core.missing import Missing
from gnnbench.kernels.missing import gpu_missing

if TYPE_CHECKING:  # keeps torch out of the listing of systems
    from torch import Tensor

MEMORY = ("continuous", "chunked", "distributed")
NEEDED = ("pylibwholegraph", "libwholegraph", "librmm")


def wholegraph_missing() -> Missing | None:
    """Why WholeGraph cannot run here, without importing it."""
    if absent := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        return Missing(
            f"WholeGraph is not installed ({absent[0]} is not there)",
            "pip install pylibwholegraph-cu13",
        )
    return gpu_missing()


class WholeMemoryTensor(Protocol):
    """A ``WholeMemoryTensor`` of WholeGraph, as far as this package uses it."""

    def gather(self, ids: Tensor) -> Tensor:
        """Rows of ``ids``."""

    def get_local_tensor(self, host_view: bool = False) -> tuple[Tensor, int]:
        """This rank's rows, and the number of the first."""


class WholeMemory:
    """A communicator of one rank; stages of a process share it, the last to close it ends it."""

    _open: ClassVar[WholeMemory | None] = None

    def __init__(self) -> None:
        import torch

        threads = torch.get_num_threads()
        # libwholegraph needs librmm; its own loader finds it through libraft, of which it needs
        # nothing else.
        import librmm

        librmm.load_library()
        import pylibwholegraph.torch as wgth

        os.environ["MASTER_ADDR"] = "localhost"
        os.environ["MASTER_PORT"] = str(_free_port())  # two workers may be alive
        wgth.init_torch_env_and_create_wm_comm(0, 1, 0, 1, wm_log_level="warn")
        torch.set_num_threads(threads)  # which it sets to one
        self.wgth: ModuleType = wgth
        self._comm = wgth.get_local_device_communicator()
        self._users = 0

    @classmethod
    def share(cls) -> WholeMemory:
        """That of the process, to be closed as often as it was shared."""
        if cls._open is None:
            cls._open = cls()
        cls._open._users += 1
        return cls._open

    def store(self, values: Tensor, memory: str, location: str, setting: str) -> WholeMemoryTensor:
        """A copy of a tensor of one or two dimensions in WholeMemory ``location`` (cpu, cuda).

        ``setting`` is what the error names. Raises ``UnsupportedError`` where there is no such
        memory.
        """
        if not self._comm.support_type_location(memory, location):
            raise UnsupportedError(
                f"WholeGraph has no {memory} memory of {location} here; give -o {setting}=chunked"
            )
        strides = [values.shape[1], 1] if values.dim() == 2 else [1]
        stored: WholeMemoryTensor = self.wgth.create_wholememory_tensor(
            self._comm, memory, location, list(values.shape), values.dtype, strides
        )
        local, first = stored.get_local_tensor(host_view=location == "cpu")
        local.copy_(values[first : first + local.shape[0]])
        return stored

    def free(self, stored: WholeMemoryTensor) -> None:
        """Give a tensor's memory back."""
        self.wgth.destroy_wholememory_tensor(stored)

    def close(self) -> None:
        """End WholeGraph's state with the last who shared it."""
        self._users -= 1
        if self._users == 0:
            type(self)._open = None
            self.wgth.finalize()


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("localhost", 0))
        port: int = s.getsockname()[1]
    return port
