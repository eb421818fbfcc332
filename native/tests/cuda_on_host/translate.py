"""Translate CUDA kernels to C++ for the host on top of device.h: launches become calls.

python translate.py native TO aggregate     # native/cuda/aggregate/*.cu, *.cuh -> TO/cuda/aggregate
"""

from __future__ import annotations

import re
import sys
from pathlib import Path


def _closing(text: str, at: int, opening: str, closing: str) -> int:
    """Return the position after the bracket that closes the one at ``at``."""
    depth = 0
    for place in range(at, len(text)):
        depth += (text[place] == opening) - (text[place] == closing)
        if depth == 0:
            return place + 1
    raise ValueError(f"no {closing!r} for the {opening!r} at {at}")


def _kernel_begin(text: str, end: int) -> int:
    """Return where the name (with template arguments) that ends at ``end`` begins."""
    place = end
    while text[place - 1].isspace():
        place -= 1
    if text[place - 1] == ">":
        depth = 0
        while True:
            place -= 1
            depth += (text[place] == ">") - (text[place] == "<")
            if depth == 0:
                break
    while re.match(r"[\w:]", text[place - 1]):
        place -= 1
    return place


def _arguments(text: str) -> list[str]:
    """Split a list at the commas outside of brackets."""
    parts, depth, begin = [], 0, 0
    for place, char in enumerate(text):
        depth += char in "([{"
        depth -= char in ")]}"
        if char == "," and depth == 0:
            parts.append(text[begin:place].strip())
            begin = place + 1
    return [*parts, text[begin:].strip()]


def translate(text: str) -> str:
    """Replace each ``kernel<<<grid, threads, shared, stream>>>(...)`` by a call."""
    text = re.sub(
        r"extern __shared__ ([\w:]+) (\w+)\[\];",
        r"\1* const \2 = reinterpret_cast<\1*>(on_host::dynamic_shared.data());",
        text,
    )
    while (at := text.find("<<<")) >= 0:
        begin = _kernel_begin(text, at)
        close = text.index(">>>", at)
        end = _closing(text, text.index("(", close), "(", ")")
        grid, threads, shared, _ = _arguments(text[at + 3 : close])
        call = text[begin:at].strip() + text[close + 3 : end]
        text = (
            f"{text[:begin]}on_host::launch({grid}, {threads}, {shared}, [=] {{ {call}; }})"
            f"{text[end:]}"
        )
    return text


def translate_folder(native: Path, to: Path, part: str, names: str = "*") -> list[Path]:
    """Translate the files ``names`` of ``native/cuda/PART`` into ``to``; return the sources."""
    folder = to / "cuda" / part
    folder.mkdir(parents=True, exist_ok=True)
    sources = []
    for file in sorted((native / "cuda" / part).glob(f"{names}.cu*")):
        text = translate(file.read_text())
        if file.suffix == ".cu":
            sources.append(folder / f"{file.stem}.cpp")
            sources[-1].write_text('#include "tests/cuda_on_host/device.h"\n' + text)
        else:
            (folder / file.name).write_text(text)
    return sources


if __name__ == "__main__":
    for source in translate_folder(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]):
        print(source)
