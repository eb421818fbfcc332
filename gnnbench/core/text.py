"""Make text safe to show, whatever file or program it comes from: one function for each output.

Terminals act on control characters, Markdown on tags, LaTeX on its special characters,
spreadsheets on formulas, matplotlib on ``$``. All functions first make the text printable.
"""

from __future__ import annotations

import html
import re
import unicodedata
from typing import TypeVar

T = TypeVar("T")

_SHORT = {"\n": r"\n", "\t": r"\t", "\r": r"\r"}
_FIGURE_LETTERS = 200  # of a text in a figure: a longer one makes the image too large to be drawn
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?%?")
_FORMULA = ("=", "+", "-", "@")
# Characters and sequences that begin markup inside a line of Markdown.
_MARKDOWN = re.compile(
    r"[\\`*|$]"
    r"|~(?=[^~]*~)"  # strikes what is between two
    r"|\](?=[(\[:])"  # a link; intervals such as [0.9, 1.1] stay as they are
    r"|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])"  # emphasis; names_of_things stay as they are
)
_STRIKE = re.compile(r"(?<!\\)~")
_MARKDOWN_BLOCK = re.compile(r"([-+#=]|\d{1,9}(?=[.)]))")
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": "$<$", ">": "$>$", "|": "$|$", "[": "{[}", "]": "{]}", "*": "{*}", '"': "{''}",
    "\n": " ",
}  # fmt: skip


class Code(str):
    """A text that Markdown shows as code, such as a name or a command."""


class Marked(str):
    """A sentence in which spans between backticks are code."""


def printable(text: str) -> str:
    """The text in one line: characters that are not printable are escaped (``\\x1b``, ``\\n``).

    Escaped are control characters, line separators, formatting characters (bidirectional marks,
    zero-width characters), unassigned characters and surrogates; a surrogate that stands for a byte
    of a file name is shown as that byte.
    """
    return text if text.isprintable() else "".join(map(_escape, text))


def printable_lines(text: str, kept: str = "\n\t") -> str:
    """The same, but characters in ``kept`` stay, such as the ends of lines."""
    if text.isprintable():
        return text
    return "".join(sign if sign in kept else _escape(sign) for sign in text)


def _escape(sign: str) -> str:
    if sign.isprintable() or unicodedata.category(sign) == "Zs":
        return sign
    code = ord(sign)
    if 0xDC80 <= code <= 0xDCFF:  # how Python keeps a byte of a name that is not UTF-8
        code -= 0xDC00
    short = f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    return _SHORT.get(sign, short if code < 0x10000 else f"\\U{code:08x}")


def markdown(text: str) -> str:
    """For a part of a line or a cell of a table; ``Code`` becomes a span of code."""
    if isinstance(text, Code):
        return code(text).replace("|", "\\|")
    if isinstance(text, Marked):
        return "".join(
            markdown(Code(part)) if is_code else _STRIKE.sub(r"\\~", markdown(part))
            for part, is_code in spans(text)
        )
    shown = html.escape(printable(text.replace("\n", " ")), quote=False)
    return _MARKDOWN.sub(lambda match: f"\\{match[0]}", shown)


def spans(text: str) -> list[tuple[str, bool]]:
    """The non-empty parts of a text between backticks, each with whether it is code.

    An unpaired backtick is part of the text.
    """
    parts = text.split("`")
    if len(parts) % 2 == 0:
        parts[-2:] = ["`".join(parts[-2:])]
    return [(part, bool(nth % 2)) for nth, part in enumerate(parts) if part]


def unmarked(text: str) -> str:
    """The text without the backticks around code."""
    return "".join(part for part, _ in spans(text))


def html_spans(text: str) -> str:
    """HTML of a text in which spans between backticks are code."""
    escaped = ((html.escape(printable(part)), is_code) for part, is_code in spans(text))
    return "".join(f"<code>{part}</code>" if is_code else part for part, is_code in escaped)


def markdown_line(text: str) -> str:
    """For a whole line or an item of a list, which begins no heading, list or rule."""
    shown = markdown(text).strip()
    if match := _MARKDOWN_BLOCK.match(shown):
        at = 0 if match[0] in "-+#=" else match.end()
        return f"{shown[:at]}\\{shown[at:]}"
    return shown


def code(text: str) -> str:
    """A span of code in Markdown, fenced by more backticks than the text has in a row."""
    shown = printable(text)
    fence = "`" * (max(map(len, re.findall("`+", shown)), default=0) + 1)
    gap = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{gap}{shown}{gap}{fence}"


def latex(text: str) -> str:
    """For the text of a LaTeX document."""
    shown = printable_lines(text, "\n")
    return re.sub("-(?=-)", "-{}", "".join(_LATEX.get(sign, sign) for sign in shown))


def csv_cell(value: T) -> T | str:
    """A value of a CSV table: a text that a spreadsheet would take for a formula begins with
    ``'``; numbers, also those written as text, stay."""
    if not isinstance(value, str):
        return value
    formula = value.lstrip().startswith(_FORMULA) or value.startswith(("\t", "\r"))
    return ("'" if formula and not _NUMBER.fullmatch(value) else "") + printable(value)


def figure(text: str) -> str:
    """For a label of matplotlib: no formulas, and no longer than an image has room for."""
    shown = printable_lines(text, "\n")
    if len(shown) > _FIGURE_LETTERS:
        half = _FIGURE_LETTERS // 2
        shown = f"{shown[:half]}...{shown[-half:]}"
    return re.sub(r"(?<!\\)\$", r"\\$", shown)
