"""Golden files: where they are, and how compressed JSON is read and written."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def read_json(name: str) -> Any:
    """The value of a compressed golden file."""
    return json.loads(lzma.decompress((HERE / name).read_bytes()))


def write_json(name: str, value: Any) -> None:
    """Write a compressed golden file; equal values give equal bytes."""
    text = json.dumps(value, sort_keys=True, indent=0)
    (HERE / name).write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def read_lines(name: str) -> list[str]:
    """The lines of a golden text file."""
    return (HERE / name).read_text(encoding="utf-8").splitlines()


def write_lines(name: str, lines: list[str]) -> None:
    """Write a golden text file."""
    (HERE / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
