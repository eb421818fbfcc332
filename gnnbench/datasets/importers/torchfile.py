"""Read files of ``torch.save``. Only tensors and PyG's ``Data`` are unpickled."""

from __future__ import annotations

import pickle
import warnings
import zipfile
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from gnnbench.core.errors import DataError, MissingError, UsageError
from gnnbench.datasets.importers.named import MemoryArrays
from gnnbench.datasets.importers.rawfile import reading
from gnnbench.datasets.importers.tensors import is_sparse, named_tensors

TORCH = (".pt", ".pth")
# What PyG's Data is made of.
_DATA = {
    "torch_geometric.data.data.Data",
    "torch_geometric.data.data.DataEdgeAttr",
    "torch_geometric.data.data.DataTensorAttr",
    "torch_geometric.data.storage.GlobalStorage",
}


class PygData(Protocol):
    """The part of PyG's ``Data`` that is read."""

    num_nodes: int | None

    def to_dict(self) -> dict[object, object]:
        """Its values by name."""


def graph_file(path: Path) -> MemoryArrays:
    """The arrays of a graph: a tensor, a dict of tensors or PyG's ``Data``.

    Raises ``DataError`` for a damaged file or another content, ``UsageError`` for other pickled
    objects, ``MissingError`` where PyG is needed and not installed.
    """
    value = load(path)
    if isinstance(value, list | tuple) and value and hasattr(value[0], "keys"):
        # PyG's InMemoryDataset saves a graph and the slices of several.
        if len(value) > 1 and not _one_graph(value[1]):
            raise DataError(f"{path} holds several graphs; save a single graph")
        value = value[0]
    if hasattr(value, "to_dict"):
        value = data_values(value, path)
    if isinstance(value, Mapping):
        return named_tensors(path, value)
    if hasattr(value, "detach"):
        return named_tensors(path, {"adj" if is_sparse(value) else "edge_index": value})
    raise DataError(
        f"{path} holds a {type(value).__name__}; give a tensor edge_index, a dict of tensors or "
        "PyG's Data"
    )


def data_values(data: object, path: Path) -> dict[object, object]:
    """The values of PyG's ``Data`` by name, and its number of nodes if it is known.

    Raises ``DataError``, which names ``path``, for tensors without values and a damaged ``Data``.
    """
    try:
        pyg = cast(PygData, data)
        values = dict(pyg.to_dict())
        named_tensors(path, values)  # checked before PyG derives num_nodes from the tensors
        if "num_nodes" not in values and not any(is_sparse(value) for value in values.values()):
            values["num_nodes"] = pyg.num_nodes
    except (AttributeError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise DataError(f"{path} holds a damaged Data ({error}); save it again") from None
    return values


def node_file(path: Path, role: str) -> MemoryArrays:
    """The arrays of a file of features, labels or a split; a single one is named ``role``."""
    value = load(path)
    if hasattr(value, "to_dict"):
        value = data_values(value, path)
    return named_tensors(path, value if isinstance(value, Mapping) else {role: value})


def _one_graph(slices: object) -> bool:
    """Whether the slices that PyG saves with its data are those of a single graph."""
    if slices is None:
        return True
    if not isinstance(slices, Mapping):
        return False
    return all(tuple(getattr(ends, "shape", ())) == (2,) for ends in slices.values())


def load(path: Path) -> object:
    """Load a file of ``torch.save``: tensors, memory-mapped if possible, and plain values.

    Sparse tensors are not checked here. Raises as :func:`graph_file`.
    """
    import torch

    with reading(path):
        zipped = zipfile.is_zipfile(path)
        if zipped and _is_model(path):
            raise DataError(f"{path} is a model of TorchScript; save a dict of tensors")

    def load_with(
        classes: list[type],
    ) -> object:
        unchecked = torch.sparse.check_sparse_tensor_invariants(False)
        with (
            reading(path), torch.serialization.safe_globals([kind for kind in classes]), unchecked,
            warnings.catch_warnings(action="ignore"),  # about how the file was pickled
        ):  # fmt: skip
            mmap = _stored_plainly(path) if zipped else None
            return torch.load(path, map_location="cpu", weights_only=True, mmap=mmap)

    names: list[str] = []
    try:
        return load_with([])
    except pickle.UnpicklingError:
        if zipped:
            with reading(path):
                try:
                    names = torch.serialization.get_unsafe_globals_in_checkpoint(path)
                except (pickle.UnpicklingError, AttributeError, IndexError):
                    names = []
    except (AttributeError, IndexError, AssertionError, RecursionError, ImportError):
        names = []  # raised for damaged pickles
    if not names:
        raise DataError(f"{path} is truncated, damaged or no file of torch; get it again")
    if {f"torch_geometric.data.storage.{kind}" for kind in ("NodeStorage", "BaseStorage")} & {
        *names
    }:
        raise UsageError(
            f"{path} holds PyG's HeteroData, one kind of node and of edge is needed; save its "
            ".to_homogeneous()"
        )
    if others := sorted(set(names) - _DATA):
        raise UsageError(
            f"{path} holds pickled objects ({others[0]}), which gnnbench never loads; save a dict "
            "of tensors (torch.save(data.to_dict(), ...)), or call from_pyg or from_dgl of "
            "gnnbench.datasets.importers.objects in Python"
        )
    try:
        classes = [getattr(import_module(m), c) for m, _, c in (n.rpartition(".") for n in _DATA)]
    except ImportError:
        raise MissingError(
            f"{path} holds PyG's Data and PyG is not installed; pip install torch-geometric"
        ) from None
    try:
        return load_with(classes)
    except (pickle.UnpicklingError, AttributeError, IndexError, AssertionError, RecursionError):
        raise DataError(f"{path} is truncated or damaged; get it again") from None


def _is_model(path: Path) -> bool:
    with zipfile.ZipFile(path) as file:
        return any(name.rpartition("/")[2] == "constants.pkl" for name in file.namelist())


def _stored_plainly(path: Path) -> bool:
    """Whether no entry of a zip file is compressed, so that its tensors can be mapped."""
    with zipfile.ZipFile(path) as file:
        return all(entry.compress_type == zipfile.ZIP_STORED for entry in file.infolist())
