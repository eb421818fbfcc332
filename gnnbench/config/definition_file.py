"""The tables of a definition's file, before anything is known of their meaning."""

from __future__ import annotations

import codecs
import tomllib
from pathlib import Path

from pydantic import JsonValue

from gnnbench.config import limits
from gnnbench.core.errors import UsageError


def parsed(path: Path) -> dict[str, JsonValue]:
    """The tables of a file, with or without a byte-order mark. Raises ``UsageError``."""
    try:
        with path.open("rb") as file:
            content = file.read(limits.MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read '{path}': {(error.strerror or '').lower()}") from None
    if len(content) > limits.MAX_BYTES:
        raise UsageError(f"'{path.name}' is larger than {limits.MAX_BYTES >> 20} MiB; shorten it")
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise UsageError(f"'{path.name}' is UTF-16; save it as UTF-8")
    if (at := content.find(b"\0")) >= 0:
        line = content.count(b"\n", 0, at) + 1
        raise UsageError(f"'{path.name}' has a NUL byte in line {line}; save it as text in UTF-8")
    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(
            f"'{path.name}' is not TOML: byte 0x{content[error.start]:02x} in line {line} is not"
            " UTF-8; save the file as UTF-8"
        ) from None
    except RecursionError:
        raise UsageError(f"'{path.name}' nests lists or tables too deeply; use fewer") from None
    except ValueError as error:  # TOMLDecodeError, and numbers of thousands of digits
        raise UsageError(f"'{path.name}' is not TOML: {error}") from None
