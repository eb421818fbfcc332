"""Resolve dataset names."""

from __future__ import annotations

import hashlib
import re
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from gnnbench.core import names
from gnnbench.core.errors import UsageError
from gnnbench.datasets.download_sources import downloads
from gnnbench.datasets.generators import rmat, rows
from gnnbench.datasets.manifest import Manifest, manifests
from gnnbench.datasets.paths import imported_dir, raw_folders
from gnnbench.datasets.store import layout

_LONGEST_NAME = 200  # file systems take 255 bytes, hidden files of the store add some
Kind = Literal["real", "twin", "rmat", "rows", "npz", "store"]
RMAT, ROWS = "rmat", "rows"
_NAME = re.compile(
    r"(?P<base>.*?)(?P<twin>~twin)?(?:@(?P<scale>[^@+]*))?"
    r"(?P<sym>\+sym)?(?P<weights>\+weights)?",
    re.S,
)


@dataclass(frozen=True)
class DatasetRef:
    """A resolved name.

    ``kind``: ``real`` (a manifest's dataset), ``twin`` (generated), ``rmat`` (generated; ``scale``
    is the log of its nodes), ``rows`` (generated; ``shape`` is that of the feature table), ``npz``
    (a file), ``store`` (a folder that is already prepared, ``data import``'s among them). ``name``
    is canonical: equal names mean equal graphs. ``sym`` asks for the union with the reversed edges,
    ``weights`` for seeded weights of the edges.
    """

    name: str
    kind: Kind
    base: str
    scale: float = 1.0
    sym: bool = False
    path: Path | None = None
    shape: tuple[int, int] = (0, 0)
    weights: bool = False

    @property
    def manifest(self) -> Manifest | None:
        """The dataset's manifest, where it has one."""
        return manifests().get(self.base) if self.kind in ("real", "twin") else None

    @property
    def size(self) -> rmat.Size:
        """Of an R-MAT graph."""
        size = rmat.Size.parse(self.name.removeprefix(f"{RMAT}@").partition("+")[0])
        assert size is not None
        return size

    @property
    def origin(self) -> DatasetRef | None:
        """The graph that this one is made of: that without its last suffix; None without any."""
        if self.weights:
            return replace(self, name=self.name.removesuffix("+weights"), weights=False)
        if self.sym:
            return replace(self, name=self.name.removesuffix("+sym"), sym=False)
        return None

    def folder_name(self, seed: int = 0) -> str:
        """Name of the prepared folder below the data root."""
        if self.kind in ("npz", "store") and self.path is not None:
            key = str(self.path)
            if self.kind == "npz":
                stat = self.path.stat()
                key += f"|{stat.st_size}|{stat.st_mtime_ns}"
            suffix = "+sym" if self.sym else ""
            name = f"{self.base}-{hashlib.sha256(key.encode()).hexdigest()[:10]}{suffix}"
        else:
            name = self.name
        return name if seed == 0 else f"{name}-seed{seed}"


def plain_name(name: str) -> str:
    """How names are compared: small letters, '_' for '-'."""
    return name.strip().lower().replace("-", "_")


def known_names() -> dict[str, str]:
    """Every base name and alias of the manifests -> the canonical base name."""
    canonical = {}
    for name, manifest in manifests().items():
        for alias in (name, *manifest.aliases):
            canonical[plain_name(alias)] = name
    return canonical


def npz_files() -> dict[str, Path]:
    """Graphs as ``.npz`` in the raw folders that no manifest describes, by name."""
    known: dict[str, str] = known_names()
    files: dict[str, Path] = {}
    for folder in raw_folders():
        for path in sorted(folder.glob("*.npz")) if folder.is_dir() else []:
            if plain_name(path.stem) not in known:
                files.setdefault(plain_name(path.stem), path.resolve())
    return files


def imported_graphs(root: str | Path | None = None) -> dict[str, Path]:
    """Graphs that ``data import`` stored, by name."""
    folder = imported_dir(root)
    folders = sorted(folder.iterdir()) if folder.is_dir() else []
    return {p.name: p for p in folders if p.name[0] != "." and (p / layout.META).exists()}


def without_edges(name: str) -> bool:
    """Whether it names a table of rows without a graph."""
    return plain_name(name.partition("@")[0].strip()) == ROWS


def check_new_name(name: str) -> str:
    """The form in which a name for an imported graph is kept.

    Raises ``UsageError`` where it could not be distinguished from other datasets' names.
    """
    if not isinstance(name, str):
        raise UsageError(f"a graph's name is a text, not a {type(name).__name__}")
    plain = plain_name(name)
    if len(plain) > _LONGEST_NAME:
        raise UsageError(f"a graph's name has {_LONGEST_NAME} characters at most, not {len(plain)}")
    if re.fullmatch(r"[a-z0-9_][a-z0-9_.]*", plain) is None or plain.endswith(".npz"):
        raise UsageError(
            f"'{name}' cannot name a graph; use letters, digits, '_', '-' and '.', as in 'my_graph'"
        )
    if plain in (RMAT, ROWS) or plain in known_names() or plain in npz_files():
        raise UsageError(f"'{name}' is the name of another dataset; choose another name")
    return plain


def resolve(name: str, root: str | Path | None = None) -> DatasetRef:
    """Resolve a dataset name.

    ``ogbn_arxiv``, ``ogbn_arxiv+sym`` (made symmetric), ``products~twin``, ``products~twin@0.05``
    (a twin of that scale), ``papers100m~twin@0.01+sym``, ``twitter~twin+weights`` (with drawn
    weights of the edges; of generated graphs alone), ``rmat@21`` (R-MAT of 2^21 nodes),
    ``rmat@27x12x128`` (2^27 nodes of mean degree 12, features 128 wide), ``rows@2Mx128`` (two
    million rows of 128 features, no edges), the name of an imported graph (below ``root``) or of an
    ``.npz`` in a raw folder, a path to an ``.npz`` or to a prepared folder. Raises ``UsageError``
    for anything else and suggests the nearest.
    """
    match = _NAME.fullmatch(name.strip())
    assert match is not None
    base, twin, sym = match["base"], match["twin"] is not None, match["sym"] is not None
    weights = match["weights"] is not None
    if (ref := _path_ref(name, base, sym)) is not None:
        if ref.path != names.typed_path(name).absolute():
            _check_weights(name, weights)
        if ref.kind == "npz" and (twin or match["scale"] is not None):
            raise UsageError(f"'{name}' is a file and has no twin; give a dataset's name")
        return ref
    if plain_name(base) == RMAT and not twin:
        size = _rmat_size(name, match["scale"])
        tail = "+sym" * sym + "+weights" * weights
        return DatasetRef(f"{RMAT}@{size}{tail}", "rmat", RMAT, size.scale, sym, weights=weights)
    if not twin:
        _check_weights(name, weights)
    if plain_name(base) == ROWS and not twin:
        shape = _rows_shape(name, match["scale"], sym)
        return DatasetRef(f"{ROWS}@{rows.short(*shape)}", "rows", ROWS, shape=shape)
    canonical = known_names().get(plain_name(base))
    if canonical is None:
        stem, files, stored = plain_name(base), npz_files(), imported_graphs(root)
        if stem in {**files, **stored} and not twin and match["scale"] is None:
            kind: Kind = "store" if stem in stored else "npz"
            path = {**files, **stored}[stem]
            return DatasetRef(f"{stem}{'+sym' * sym}", kind, stem, sym=sym, path=path)
        if stem in {**files, **stored}:
            raise UsageError(f"'{stem}' is a graph of yours and has no twin; use '{stem}'")
        _no_import(name)
        if stem in downloads():
            raise UsageError(f"'{stem}' is not here yet; get it with 'gnnbench data get {stem}'")
        raise UsageError(_unknown(name, base, {*files, *stored}))
    if not twin:
        if match["scale"] is not None:
            raise UsageError(
                f"a real dataset cannot be scaled: use '{canonical}~twin@{match['scale']}'"
            )
        if variant_of := manifests()[canonical].variant_of:
            raise UsageError(
                f"'{canonical}' is a generated graph alone: use '{canonical}~twin', or"
                f" '{variant_of}', the real dataset that it varies"
            )
        return DatasetRef(f"{canonical}{'+sym' * sym}", "real", canonical, sym=sym)
    if manifests()[canonical].twin is None:
        raise UsageError(f"'{canonical}' has no twin; its manifest has no [twin] recipe")
    scale = _scale(name, match["scale"])
    tail = ("" if scale == 1.0 else f"@{scale:g}") + "+sym" * sym + "+weights" * weights
    return DatasetRef(f"{canonical}~twin{tail}", "twin", canonical, scale, sym, weights=weights)


def _check_weights(name: str, weights: bool) -> None:
    if weights:
        raise UsageError(
            f"'{name}' is no generated graph, and weights of edges are drawn for these alone, as in"
            " twitter~twin@0.005+weights; 'gnnbench data import' keeps the weights that a file has"
        )


def _scale(name: str, text: str | None) -> float:
    try:
        scale = 1.0 if text is None else float(text)
    except ValueError:
        scale = 0.0
    if not 0.0 < scale <= 16.0:
        raise UsageError(
            f"the scale of '{name}' must be a number above 0 and up to 16, as in @0.05"
        )
    return scale


def _rmat_size(name: str, text: str | None) -> rmat.Size:
    size = rmat.Size() if text is None else rmat.Size.parse(text)
    if size is None:
        low, high = rmat.SCALES[0], rmat.SCALES[-1]
        raise UsageError(
            f"the scale of '{name}' must be the log of its nodes, {low} to {high}, as in"
            f" rmat@{rmat.DEFAULT_SCALE}, or that, their mean degree (up to {rmat.DEGREES[-1]})"
            f" and the features' width (up to {rmat.DIMS[-1]}), as in rmat@27x12x128"
        )
    return size


def _rows_shape(name: str, text: str | None, sym: bool) -> tuple[int, int]:
    if sym:
        raise UsageError(f"'{name}' has no edges to reverse; leave +sym out")
    shape = rows.shape(rows.EXAMPLE if text is None else text)
    if shape is None:
        raise UsageError(
            f"'{name}' must say how many rows of how many features, up to 2^31 - 1 of"
            f" {rows.WIDTHS[-1]}, as in {ROWS}@{rows.EXAMPLE}"
        )
    return shape


def _path_ref(name: str, base: str, sym: bool) -> DatasetRef | None:
    path = names.typed_path(base)
    if path.suffix == ".npz":
        if not path.is_file():
            raise UsageError(f"there is no file {base}; give the path of an existing .npz")
        return DatasetRef(
            str(path.absolute()) + "+sym" * sym, "npz", path.stem, 1.0, sym, path.absolute()
        )
    asked = name
    if _is_prepared(names.typed_path(name)):  # a suffix is of its own name
        sym = False
    else:
        asked = name.removesuffix("+weights").removesuffix("+sym")
    folder = names.typed_path(asked)
    if "/" not in name and plain_name(base) in {*known_names(), RMAT, ROWS}:
        return None  # a dataset's name means the dataset, whatever lies in the current folder
    if _is_prepared(folder):
        full = folder.absolute()
        return DatasetRef(f"{full}{'+sym' * sym}", "store", folder.name, sym=sym, path=full)
    if "/" in name:
        _no_import(name)
        if not folder.exists():
            raise UsageError(
                f"there is no file or folder '{asked}'; give the path of an existing .npz file"
                " or of a prepared graph's folder"
            )
        what = f"a folder without {layout.META}" if folder.is_dir() else "neither file nor folder"
        raise UsageError(
            f"'{asked}' is {what}, so it is no prepared graph; give an .npz"
            " file, a prepared graph's folder, or import it with 'gnnbench data import'"
        )
    return None


def _is_prepared(folder: Path) -> bool:
    """Whether a folder holds a prepared graph. Raises ``UsageError`` where it cannot be read."""
    return names.typed_path(str(folder / layout.META)).exists()


def _no_import(name: str) -> None:
    """Raise ``UsageError`` for a file that would have to be imported."""
    if names.typed_path(name).is_file():
        word, short = shlex.quote(name), _short(name)
        raise UsageError(
            f"{name} is a file to import first: gnnbench data import {word} --name {short}, then "
            f"use it as --datasets {short}"
        )


def _short(file: str) -> str:
    """A name to suggest for a file's graph."""
    return re.sub("[^a-z0-9_]+", "_", Path(file).name.lower().split(".")[0]).strip("_") or "mine"


def _unknown(name: str, base: str, files: set[str]) -> str:
    known = known_names()
    choices = sorted(
        {*known.values(), *files, f"{RMAT}@{rmat.DEFAULT_SCALE}", f"{ROWS}@{rows.EXAMPLE}"}
    )
    twins = {f"{alias}~twin": f"{canonical}~twin" for alias, canonical in known.items()}
    candidates = {**{file: file for file in files}, **known, **twins}
    if near := names.nearest(plain_name(base), candidates):
        meant = candidates[near]
        return f"unknown dataset '{name}'; did you mean '{name.replace(base, meant, 1)}'?"
    return (
        f"unknown dataset '{name}'; known are {', '.join(choices)}, and twins as 'products~twin';"
        " one of your own is stored by 'gnnbench data import'"
    )
