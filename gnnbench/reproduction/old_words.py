"""Free text of results that older versions wrote, in the terms of this version."""

from __future__ import annotations

import re

# From a pattern of older versions to the text of this one.
_TERMS = (
    (r"after 1 (?:life|lives)\b", "after 1 process"),
    (r"after (\d+) lives\b", r"after \1 processes"),
    (r"quieten the machine", "make the machine idle"),
    (r"a reference that lived on", "a reference process that ran on"),
)


def in_current_terms(text: str) -> str:
    """A reason from a table of results, with terms of older versions replaced."""
    for pattern, term in _TERMS:
        text = re.sub(pattern, term, text)
    return text
