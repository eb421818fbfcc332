"""No name for an untyped dict: records have keys that the type checker knows."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
UNTYPED = {"dict[str, Any]", "dict[str, object]"}
# Records of the journals, whose keys depend on phases and on third-party reports.
KNOWN = {"gnnbench/schema/events.py: JournalRecord"}


def untyped_aliases(source: str) -> list[str]:
    """Names that a module gives to an untyped dict, or to a list or an optional of one."""
    names = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            parts = {ast.unparse(part) for part in ast.walk(node.value) if _is_type(part)}
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if _is_type(node.value) and parts & UNTYPED:
                names += [ast.unparse(target) for target in targets]
    return names


def _is_type(node: ast.AST) -> bool:
    return isinstance(node, ast.Name | ast.Subscript | ast.BinOp)


def test_no_alias_of_an_untyped_dict() -> None:
    files = {path.relative_to(ROOT): path for path in (ROOT / "gnnbench").rglob("*.py")}
    aliases = {
        f"{name}: {alias}"
        for name, path in files.items()
        for alias in untyped_aliases(path.read_text(encoding="utf-8"))
    }
    assert aliases == KNOWN


def test_aliases_are_recognised() -> None:
    text = "A = dict[str, Any]\nB: TypeAlias = list[dict[str, object]]\nC = dict[str, int]\nd = {}"
    assert untyped_aliases(text) == ["A", "B"]
