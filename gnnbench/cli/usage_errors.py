"""Convert an error of the command-line parser into one sentence."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from typer._click.core import Context

# Messages of the parser's validator about numbers, with the replacements.
_PLAIN = {
    r"Input should be a valid integer.*": "give a whole number",
    r"Input should be a valid number.*": "give a number",
    r"Input should be greater than or equal to (\S+)": r"give \1 or more",
    r"Input should be less than or equal to (\S+)": r"give \1 or less",
    r"Value error, ": "",
}


@runtime_checkable
class ParserError(Protocol):
    """An error that the command-line parser raises."""

    message: str

    def format_message(self) -> str:
        """The message with the option or argument that it is about."""


def sentence(error: ParserError) -> str:
    """State the error, a suggestion, and the command that prints the help."""
    context: Context | None = getattr(error, "ctx", None)
    near = next(iter(getattr(error, "possibilities", None) or ()), "")
    text, _, hint = error.format_message().partition(". Did you mean ")
    if hasattr(error, "possibilities"):
        text, hint = error.message, f"{near}?" if near else ""
    for pattern, plain in _PLAIN.items():
        text = re.sub(pattern, plain, text)
    fix = _as_option(error, context) or (f"did you mean {hint}" if hint else "")
    command = "gnnbench" if context is None else context.command_path
    parts = [text[:1].lower() + text[1:].rstrip("."), fix, f"see '{command} --help'"]
    return "; ".join(filter(None, parts))


def _as_option(error: ParserError, context: Context | None) -> str:
    """The ``-o`` spelling of an axis or limit that was given as an option, else ""."""
    name = str(getattr(error, "option_name", "") or "").lstrip("-").replace("-", "_")
    known = (
        {name for parameter in context.command.params for name in parameter.opts}
        if context
        else set()
    )
    if "-o" not in known or f"--{name}s" in known:
        return ""
    from gnnbench.config.axes import AXES
    from gnnbench.config.experiment import MeasureLimits

    return f"give -o {name}=..." if name in {*AXES, *MeasureLimits.model_fields} else ""
