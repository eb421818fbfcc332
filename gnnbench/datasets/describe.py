"""The text of ``data info``."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from gnnbench.datasets.catalog import DatasetDetails, DatasetInfo
from gnnbench.datasets.manifest import Distance, Manifest
from gnnbench.datasets.store.schema import GraphMeta

_WIDTH = 100
_KEY = 12


def describe(details: DatasetDetails) -> list[str]:
    """Lines with counts, sources, published figures, the twin's recipe and the stored arrays."""
    summary, manifest, meta = details.summary, details.manifest, details.meta
    lines = [f"{summary.name}: {summary.description}"]
    lines += _entries(_counts(summary, manifest))
    if manifest is not None:
        lines += _manifest(manifest, summary.kind)
    if meta is not None:
        lines += ["", "stored"]
        lines += _entries(_stored(details, meta))
    if details.notes:
        lines += ["", "notes"]
        lines += [line for note in details.notes for line in _wrapped(note, "- ", "  ")]
    return lines


def _counts(s: DatasetInfo, manifest: Manifest | None) -> Iterator[tuple[str, str]]:
    yield "kind", {"npz": "graph in an .npz file", "store": "prepared graph"}.get(s.kind, s.kind)
    yield "state", s.state + f" ({s.missing})" * bool(s.missing)
    yield "path", str(s.path or "")
    yield "get", s.get
    if s.num_nodes:
        direction = {True: "(both directions)", False: "(directed)", None: ""}[s.symmetric]
        size = s.num_nodes * s.feature_dim * 4 / 2**20
        yield "nodes", f"{s.num_nodes:,}"
        if s.num_edges:
            mean = s.num_edges / s.num_nodes
            yield "edges", f"{s.num_edges:,} {direction}, {mean:.1f} in-neighbours a node"
        yield "features", f"{s.feature_dim} float32, {size:,.0f} MiB"
        yield "classes", str(s.num_classes)
        yield "training", f"{s.train_size:,} nodes"
    yield "licence", s.licence
    if manifest is not None:
        yield "homepage", manifest.homepage
        yield "aliases", ", ".join(manifest.aliases)


def _manifest(manifest: Manifest, kind: str) -> Iterator[str]:
    m = manifest
    yield ""
    yield "real dataset" if kind == "real" else "of the real dataset"
    yield from _entries(
        [
            ("counts", f"{m.num_nodes:,} nodes, {m.num_edges:,} edges" if kind != "real" else ""),
            ("split", f"{m.train_size:,} / {m.val_size:,} / {m.test_size:,}: {m.split}"),
            ("assumed", ", ".join(m.assumed)),
        ]
    )
    for source in m.source:
        yield from _entries(
            [("source", f"{source.loader}: {' or '.join(source.paths)}"), ("", source.note)]
        )
    yield ""
    yield "as published"
    columns = ("paper", "table", "nodes", "edges", "features", "classes", "train", "note")
    yield from _table(columns, [[getattr(p, c) for c in columns] for p in m.published])
    if m.twin is not None:
        yield ""
        yield "twin"
        yield from _entries((key, str(value)) for key, value in m.twin.items())
    if m.distance:
        yield ""
        yield "the twin compared with published facts (deviation: points of a share, % of a count)"
        names = (
            "fact",
            "workload",
            "published",
            "twin",
            "deviation",
            "scale",
            "seeds",
            "source",
            "",
        )
        yield from _table(names, [row for d in m.distance for row in _distances(d)])


def _distances(d: Distance) -> Iterator[list[str]]:
    """One row per measurement; the fact is in the first row only."""

    def number(value: float) -> str:
        return f"{100 * value:.1f}" if d.unit == "share" else f"{value:,.0f}"

    fact = [d.fact, d.workload, "at most " * d.at_most + number(d.published)]
    note = "fitted" * d.fitted
    if d.not_measured:
        yield [*fact, "not measured", "", "", "", d.source, d.not_measured]
    for measured in d.measured:
        seeds = ", ".join(map(str, measured.seeds))
        at = [number(measured.mean), f"{d.deviation(measured):+.1f}", f"{measured.scale:g}", seeds]
        yield [*fact, *at, d.source, measured.run or note]
        fact, note = ["", "", ""], ""


def _stored(details: DatasetDetails, meta: GraphMeta) -> Iterator[tuple[str, str]]:
    yield "size", f"{details.bytes / 2**20:,.1f} MiB in {len(meta['arrays'])} arrays"
    yield "on disk", f"{details.summary.disk_bytes / 2**20:,.1f} MiB"
    split = f"{meta['train']:,} / {meta['val']:,} / {meta['test']:,}"
    for key in ("source", "features", "labels", "weights"):
        yield key, str(meta.get(key, ""))
    if "node_ids" in meta["arrays"]:
        yield "node ids", "kept: load_dataset(...).node_ids, file node_ids.bin (int64)"
    yield "split", f"{split}: {meta.get('split', '')}"
    yield "assumed", ", ".join(meta.get("assumed", []))
    yield "seed", str(meta.get("seed", ""))
    yield "by", str(meta["created_by"])


def _entries(entries: Iterable[tuple[str, str]]) -> Iterator[str]:
    for key, value in entries:
        if value:
            head = f"  {key:{max(_KEY, len(key) + 1)}}"
            if key == "get":  # a wrapped command could not be copied
                yield head + value
            else:
                yield from _wrapped(value, head, " " * len(head))


def _wrapped(text: str, first: str, rest: str) -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent=first, subsequent_indent=rest,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _table(names: Sequence[str], rows: list[list[str]]) -> Iterator[str]:
    """A table without its empty columns."""
    used = [i for i in range(len(names)) if any(row[i] for row in rows)]
    lines = [[names[i] for i in used], *([row[i] for i in used] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(used))]
    for line in lines:
        yield ("  " + "  ".join(f"{c:{w}}" for c, w in zip(line, widths, strict=True))).rstrip()
