"""Availability and selection of PyG's sampling extensions."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager

from gnnbench.core.errors import MissingError
from gnnbench.core.missing import Missing
from gnnbench.kernels.missing import gpu_missing

# Their modules, in the order in which PyG prefers them.
EXTENSIONS = {"pyg-lib": "pyg_lib", "torch-sparse": "torch_sparse"}


def pyg_missing(device: str = "cpu") -> Missing | None:
    """Why PyG cannot be imported here or not run on ``device``, without importing it."""
    if importlib.util.find_spec("torch_geometric") is None:
        return Missing(
            "torch_geometric is not installed", "pip install -c constraints.txt torch-geometric"
        )
    return gpu_missing() if device == "cuda" else None


def require_pyg() -> None:
    """Raise ``MissingError`` where PyG is not there, with the way to get it."""
    missing = pyg_missing()
    if missing is not None:
        raise MissingError(f"{missing.reason}; {missing.fix}")


def extensions() -> list[str]:
    """The installed sampling extensions, without importing them; PyG takes the first."""
    return [name for name, module in EXTENSIONS.items() if importlib.util.find_spec(module)]


def extension_missing(name: str) -> Missing | None:
    """Why an extension of ``EXTENSIONS`` cannot be imported here, without importing it."""
    if name in extensions():
        return None
    return Missing(f"PyG's sampling extension {name} is not installed", how_to_get(name))


def how_to_get(extension: str) -> str:
    """The command that installs an extension for this torch."""
    if extension == "torch-sparse":
        return (
            "pip install --no-build-isolation torch-scatter==2.1.2 torch-sparse==0.6.18"
            " (builds from source; half an hour on two cores)"
        )
    import torch

    version, _, build = torch.__version__.partition("+")
    index = f"https://data.pyg.org/whl/torch-{version}+{build or 'cpu'}.html"
    return f"pip install --no-deps pyg-lib -f {index} (PyG's own wheel index)"


def sample_by(extension: str) -> None:
    """Make PyG's samplers use this extension instead of their default.

    Raises ``MissingError`` where PyG could not load it.
    """
    import torch_geometric.typing as flags

    loaded = {"pyg-lib": flags.WITH_PYG_LIB, "torch-sparse": flags.WITH_TORCH_SPARSE}
    if not loaded[extension]:
        raise MissingError(
            f"PyG cannot load its sampling extension {extension}, which was built for another"
            f" torch; {how_to_get(extension)}"
        )
    flags.WITH_PYG_LIB = extension == "pyg-lib"


@contextmanager
def sampling_by(extension: str) -> Iterator[None]:
    """Like ``sample_by``, until the end of the context."""
    import torch_geometric.typing as flags

    preferred = flags.WITH_PYG_LIB
    try:
        sample_by(extension)
        yield
    finally:
        flags.WITH_PYG_LIB = preferred
