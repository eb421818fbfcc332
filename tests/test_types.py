"""No name for an untyped dict: records have keys that the type checker knows."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
UNTYPED = {
    f"{kind}[str, {value}]"
    for kind in ("dict", "Dict", "defaultdict", "MutableMapping")
    for value in ("Any", "object")
}
JOURNAL = ("events", "reports", "samples")  # modules of gnnbench/schema


def untyped_names(source: str) -> list[str]:
    """Names that a module gives to an untyped dict, or to a type with one in it."""
    names = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if _is_type(node.value) and _has_untyped(node.value):
                names += [ast.unparse(target) for target in targets]
        elif isinstance(node, ast.ClassDef) and any(map(_has_untyped, node.bases)):
            names.append(node.name)
    return names


def untyped_members(source: str) -> list[str]:
    """Fields, and functions with a result, that have an untyped dict in their annotation."""
    names = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.AnnAssign) and _has_untyped(node.annotation):
            names.append(ast.unparse(node.target))
        elif isinstance(node, ast.FunctionDef) and node.returns and _has_untyped(node.returns):
            names.append(node.name)
    return names


def _is_type(node: ast.AST) -> bool:
    is_new_type = isinstance(node, ast.Call) and ast.unparse(node.func) == "NewType"
    return is_new_type or isinstance(node, ast.Name | ast.Subscript | ast.BinOp)


def _has_untyped(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Subscript) and ast.unparse(n) in UNTYPED for n in ast.walk(node))


def test_no_name_of_an_untyped_dict() -> None:
    files = {path.relative_to(ROOT): path for path in (ROOT / "gnnbench").rglob("*.py")}
    names = [
        f"{name}: {alias}"
        for name, path in files.items()
        for alias in untyped_names(path.read_text(encoding="utf-8"))
    ]
    assert names == []


def test_records_of_the_journal_are_typed() -> None:
    sources = [(ROOT / f"gnnbench/schema/{name}.py").read_text() for name in JOURNAL]
    members = [member for source in sources for member in untyped_members(source)]
    assert members == ["to_json", "training_json"]  # which write lines


def test_names_are_recognised() -> None:
    text = """
A = dict[str, Any]
B: TypeAlias = list[dict[str, object]]
C = dict[str, int]
d = {}
E = NewType("E", dict[str, Any])
class F(dict[str, Any]): pass
class G(TypedDict):
    h: list[dict[str, Any]] | None
    def i(self) -> dict[str, object]: ...
    def j(self, given: dict[str, object]) -> dict[str, int]: ...
"""
    assert untyped_names(text) == ["A", "B", "E", "F"]
    assert untyped_members(text) == ["h", "i"]
