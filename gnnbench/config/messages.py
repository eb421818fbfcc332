"""Messages about wrong values of a definition; each names the permitted values."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pydantic import JsonValue, ValidationError

from gnnbench.core import names

FANOUTS = (
    "a list of lists, each from the seeds outwards with whole numbers from 1 (-1: all neighbours):"
    " -o 'fanouts=[[10,5],[15,10,5]]', in a definition fanouts = [[10, 5], [15, 10, 5]]"
)
# Of objections that no schema is at hand for; braces are filled from the validator's context.
_WORDS = {
    "list_type": "a list", "dict_type": "a table", "model_type": "a table", "string_type": "a text",
    "bool_type": "true or false", "int_type": "a whole number", "float_type": "a number",
    "greater_than": "above {gt}", "greater_than_equal": "{ge} or more", "less_than": "below {lt}",
    "literal_error": "{expected}", "string_too_short": "a text that is not empty",
    # The only text with a pattern is a definition's name.
    "string_pattern_mismatch": "made of up to 100 letters a to z, digits and _.+~@-, a letter, a"
    " digit or _ first; give another one: name = \"mine\"",
}  # fmt: skip


def legal(schema: Mapping[str, JsonValue]) -> str:
    """Return the values that a JSON schema permits, in words."""
    if isinstance(choices := schema.get("enum"), list):
        return ", ".join(map(str, choices))
    kind = schema.get("type")
    if kind == "array":
        items = schema.get("items")
        return f"list: {legal(items)}" if isinstance(items, dict) and items else "list"
    if kind in ("integer", "number"):
        name = "whole number" if kind == "integer" else "number"
        bounds = {
            "minimum": "from", "exclusiveMinimum": "above", "maximum": "up to",
            "exclusiveMaximum": "below",
        }  # fmt: skip
        return " ".join([name, *(f"{w} {schema[k]:g}" for k, w in bounds.items() if k in schema)])
    return {"string": "name", "boolean": "true, false"}.get(str(kind), "table")


def expected(schema: Mapping[str, JsonValue]) -> str:
    """The same as the end of a sentence: ``a whole number above 0``, ``cpu, cuda or auto``."""
    choices = legal(schema)
    if "enum" not in schema and schema.get("type") != "boolean":
        return f"a {choices}"
    first, _, last = choices.rpartition(", ")
    return f"{first} or {last}" if first else last


def refusal(what: str, value: object, right: str) -> str:
    """Return a sentence that rejects ``value`` and names the permitted values ``right``."""
    shown = repr(value)
    return f"{what} cannot be {shown if len(shown) <= 120 else shown[:120] + '...'}; it is {right}"


def sentence(
    error: ValidationError, keys: Collection[str], limits: Mapping[str, Mapping[str, JsonValue]]
) -> str:
    """The first objection to a definition.

    ``keys`` may be meant by an unknown one; ``limits`` are the schemas of the keys of [measure].
    """
    first = error.errors()[0]
    loc, kind, value = first["loc"], first["type"], first.get("input")
    where = ".".join(str(part) for part in loc)
    if {*loc} & {"min_rounds", "max_rounds"}:
        return f"'{where}' is gone: 'pairs' (of processes, [3, 5, 10]) and 'rounds' (of a pair)"
    if kind == "extra_forbidden":
        return f"unknown key '{where}'; {names.suggestion(str(loc[-1]), keys)}"
    if kind == "value_error":
        message = first["msg"].removeprefix("Value error, ")
        return message[:1].lower() + message[1:]
    if kind == "missing":
        return f"'{where}' is not there; add it"
    if loc[0] == "measure" and len(loc) > 1 and loc[1] in limits:
        return refusal(f"measure.{loc[1]}", value, expected(limits[str(loc[1])]))
    if kind == "list_type" and loc[0] in ("axes", "zip", "sweeps") and len(loc) > 1:
        right = FANOUTS if loc[-1] == "fanouts" else f"a list of values: {loc[-1]} = [{value!r}]"
        return refusal(where, value, right)
    if kind in _WORDS:
        return refusal(where, value, _WORDS[kind].format_map(first.get("ctx", {})))
    message = first["msg"][:1].lower() + first["msg"][1:]
    return f"{where}: {message}" if where else message
