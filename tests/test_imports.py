"""The structure of the source: no import cycles and no long files."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
Graph = dict[str, set[str]]


def executed(node: ast.AST) -> Iterator[ast.AST]:
    """All descendants, without the bodies of ``if TYPE_CHECKING``."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        yield child
        yield from executed(child)


def import_graph(top: Path) -> Graph:
    """Module -> modules of its package that it imports, anywhere in the file.

    A module does not import the packages that contain it, though Python runs them first; it does
    where it takes a name from one. Names of modules in strings, and imports that only a type
    checker sees, do not count.
    """
    modules = {}
    for path in sorted(top.rglob("*.py")):
        parts = path.relative_to(top.parent).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    graph: Graph = {}
    for name, path in modules.items():
        inside = path.name == "__init__.py"
        imported = set()
        for node in executed(ast.parse(path.read_bytes(), str(path))):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                base = node.module or ""
                if node.level:
                    parent = name.split(".")[: None if inside else -1]
                    parent = parent[: len(parent) - node.level + 1]
                    base = ".".join([*parent, *([base] if base else [])])
                names = {f"{base}.{alias.name}" for alias in node.names}
                imported |= names & set(modules)
                if names - set(modules):
                    imported.add(base)
        graph[name] = (imported & set(modules)) - {name}
    return graph


def path_between(graph: Graph, start: str, end: str) -> list[str]:
    """A shortest chain of imports from one module to another; empty if none."""
    paths: list[list[str]] = [[start]]
    visited: set[str] = set()
    for path in paths:
        for module in sorted(graph.get(path[-1], set()) - visited):
            if module == end:
                return [*path, module]
            visited.add(module)
            paths.append([*path, module])
    return []


def cycle(graph: Graph) -> list[str]:
    """A shortest import cycle, with its first module repeated at the end; empty if none."""
    cycles = [chain for module in graph if (chain := path_between(graph, module, module))]
    return min(cycles, key=len, default=[])


def test_package_has_no_import_cycles() -> None:
    graph = import_graph(ROOT / "gnnbench")
    assert len(graph) > 50
    shortest = cycle(graph)
    assert not shortest, " -> ".join(shortest)


@pytest.mark.parametrize(
    "closing",
    [
        "import top.low.b",
        "from top.low import b",
        "from top.low.b import x",
        "from .low import b",
        "from .low.b import x as y",
        "def f():\n    from top.low import b",
    ],
)
def test_every_kind_of_import_is_detected(tmp_path: Path, closing: str) -> None:
    low = tmp_path / "top" / "low"
    low.mkdir(parents=True)
    (tmp_path / "top" / "__init__.py").touch()
    (low / "__init__.py").touch()
    (low / "b.py").write_text("import json\nfrom ..a import thing\n")
    (tmp_path / "top" / "a.py").write_text("import os\n")
    assert cycle(import_graph(tmp_path / "top")) == []
    (tmp_path / "top" / "a.py").write_text(closing)
    assert cycle(import_graph(tmp_path / "top")) == ["top.a", "top.low.b", "top.a"]


def test_type_checking_imports_are_ignored(tmp_path: Path) -> None:
    package = tmp_path / "top"
    package.mkdir()
    (package / "b.py").write_text("from top import a\n")
    (package / "a.py").write_text("if TYPE_CHECKING:\n    from top import b\n")
    assert cycle(import_graph(package)) == []


def test_name_from_a_package_is_an_import_of_the_package(tmp_path: Path) -> None:
    package = tmp_path / "top"
    package.mkdir()
    (package / "__init__.py").write_text("from top.a import x\n")
    (package / "a.py").write_text("from top import b\nx = 1\n")
    (package / "b.py").touch()
    assert cycle(import_graph(package)) == []
    (package / "a.py").write_text("from top import version\nx = 1\n")
    assert cycle(import_graph(package)) == ["top", "top.a", "top"]


def test_no_source_file_is_longer_than_400_lines() -> None:
    kinds = (".py", ".h", ".cpp", ".cu", ".cuh")
    files = [
        path
        for folder in ("gnnbench", "native", "tests")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in kinds
    ]
    assert len(files) > 100
    lines = {str(path.relative_to(ROOT)): path.read_bytes().count(b"\n") for path in files}
    assert not {name for name, count in lines.items() if count > 400}
