"""What the parser objects to, as one sentence that says where to look."""

from __future__ import annotations

import re
from typing import Any

# What the parser's validator says of numbers, and the same in plain words.
_PLAIN = {
    r"Input should be a valid integer.*": "give a whole number",
    r"Input should be a valid number.*": "give a number",
    r"Input should be greater than or equal to (\S+)": r"give \1 or more",
    r"Input should be less than or equal to (\S+)": r"give \1 or less",
    r"Value error, ": "",
}


def sentence(error: Any) -> str:
    """The sentence for a parser error: the fault, a suggestion, and the help to read."""
    context = getattr(error, "ctx", None)
    near = next(iter(getattr(error, "possibilities", None) or ()), "")
    text, _, hint = error.format_message().partition(". Did you mean ")
    if hasattr(error, "possibilities"):
        text, hint = error.message, f"{near}?" if near else ""
    for pattern, plain in _PLAIN.items():
        text = re.sub(pattern, plain, text)
    mend = _as_option(error, context) or (f"did you mean {hint}" if hint else "")
    place = "gnnbench" if context is None else context.command_path
    parts = [text[:1].lower() + text[1:].rstrip("."), mend, f"see '{place} --help'"]
    return "; ".join(filter(None, parts))


def _as_option(error: Any, context: Any) -> str:
    """How an axis or a limit is given that was typed as an option of its own, or ""."""
    name = str(getattr(error, "option_name", "") or "").lstrip("-").replace("-", "_")
    known = (
        {
            name
            for parameter in getattr(context, "command", context).params
            for name in parameter.opts
        }
        if context
        else set()
    )
    if "-o" not in known or f"--{name}s" in known:
        return ""
    from gnnbench.config.axes import AXES
    from gnnbench.config.experiment import Measure

    return f"give -o {name}=..." if name in {*AXES, *Measure.model_fields} else ""
