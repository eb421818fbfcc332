"""Run this source tree in another process, and end that process with its parent."""

from __future__ import annotations

import ctypes
import os
import signal
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of linux/prctl.h

# Only this package becomes importable there, not the packages installed next to it. A gnnbench of
# the other environment is skipped, also an editable one, which has a finder for each module. The
# working folder is not searched: it could hide the package whose versions are compared.
_KNOWN = """\
import sys
from importlib.machinery import PathFinder
from importlib.util import spec_from_file_location
folder = sys.argv.pop(1)
class Suite:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "gnnbench":
            return spec_from_file_location(
                name, folder + "/__init__.py", submodule_search_locations=[folder])
        if name.startswith("gnnbench."):
            spec = PathFinder.find_spec(name, path, target)
            if spec is None:
                raise ModuleNotFoundError("No module named " + repr(name), name=name)
            return spec
for name in [n for n in sys.modules if n.partition(".")[0] == "gnnbench"]:
    del sys.modules[name]
sys.path[:] = [entry for entry in sys.path if entry]
sys.meta_path.insert(0, Suite)
"""


def bootstrap(module: str) -> str:
    """Program text that calls ``main`` of a module; its first argument is the package's folder."""
    return f"{_KNOWN}from {module} import main\nmain()\n"


def command(python: str | Path, module: str) -> list[str]:
    """Command that runs ``main`` of a module of this source; append the module's arguments."""
    return [str(python), "-c", bootstrap(module), str(PACKAGE)]


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent ends; ``parent`` is the parent's pid."""
    ctypes.CDLL(None, use_errno=True).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # the parent ended before the call above
        os.write(2, f"process {parent}, which started this one, has ended\n".encode())
        os._exit(1)
