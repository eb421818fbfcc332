"""Read a value of the command line as TOML."""

from __future__ import annotations

import tomllib
from itertools import accumulate
from typing import TYPE_CHECKING

from gnnbench.core.errors import UsageError

if TYPE_CHECKING:
    from pydantic import JsonValue

MAX_LEVELS = 16  # of tables and lists inside one another


def parse_value(text: str) -> JsonValue:
    """Parse a TOML value, or return the text itself; lists need no quotes: ``[a, b]``.

    Raises ``UsageError`` for more than ``MAX_LEVELS`` lists inside one another, and for a number
    of thousands of digits.
    """
    if _levels(text) > MAX_LEVELS:
        raise UsageError(f"a value is nested in more than {MAX_LEVELS} lists; use fewer levels")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
        # In a list nothing can follow the value: neither a comment nor another key.
        if tomllib.loads(f"value = [{text}]") == {"value": [value]}:
            return value
    except tomllib.TOMLDecodeError:
        pass
    except ValueError as error:
        raise UsageError(f"'{text[:MAX_LEVELS]}...' is too long a number ({error})") from None
    if text.startswith("[") and text.endswith("]"):
        return [parse_value(part) for part in _parts(text[1:-1])]
    return text


def _parts(text: str) -> list[str]:
    """Elements of a list: the text between its top-level commas."""
    parts, depth = [""], 0
    for sign in text:
        depth += (sign == "[") - (sign == "]")
        if sign == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts if part.strip()]


def _levels(text: str) -> int:
    """How many lists are open at once in a text, at most."""
    return max(accumulate((sign == "[") - (sign == "]") for sign in text), default=0)
