"""Definitions as they are read, before anything is validated: tables laid over one another."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue


def flattened(table: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Nested tables by paths; a stage written as a table has its name under ``name``."""
    flat: dict[str, JsonValue] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            inner = flattened(value)
            if "name" in inner:
                flat[key] = inner.pop("name")
            flat |= {f"{key}.{k}": v for k, v in inner.items()}
        else:
            flat[key] = value
    return flat


def with_paths(raw: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """A partial definition whose axes and systems' settings are written by paths."""
    raw = dict(raw)
    for key in ("axes", "zip"):
        if isinstance(table := raw.get(key), dict):
            raw[key] = flattened(table)
    for key, inner in (
        ("systems", flattened),
        ("sweeps", flattened),
        ("profiles", with_paths),
    ):
        if isinstance(tables := raw.get(key), dict):
            raw[key] = {
                name: inner(value) if isinstance(value, dict) else value
                for name, value in tables.items()
            }
    return raw


def merge(base: Mapping[str, JsonValue], over: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """``base`` with ``over`` laid on it: tables merged, anything else replaced.

    A sweep is replaced whole too: its axes move together, so its lists have one length.
    """
    result = dict(base)
    for key, value in over.items():
        old = result.get(key)
        if not (isinstance(old, dict) and isinstance(value, dict)):
            result[key] = value
        else:
            result[key] = {**old, **value} if key == "sweeps" else merge(old, value)
    return result


def subtable(raw: Mapping[str, JsonValue], key: str) -> dict[str, JsonValue]:
    """The table under a key; empty for a value of another type, which validation rejects."""
    inner = raw.get(key)
    return inner if isinstance(inner, dict) else {}


def lay_axes(raw: Mapping[str, JsonValue], over: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """``merge`` in which an axis that moves between [axes] and [zip] leaves its old place."""
    raw = dict(raw)
    for here, there in (("axes", "zip"), ("zip", "axes")):
        laid = subtable(over, here)
        raw[there] = {k: v for k, v in subtable(raw, there).items() if k not in laid}
    return merge(raw, over)


def laid_on_default(
    base: Mapping[str, JsonValue], own: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """``base`` with what an heir says itself laid on the default profile that it inherits.

    Else a run that names no profile would have that profile's axes in place of the heir's. An heir
    that names its default, and a run that names a profile, mean it as it stands.
    """
    tables = ("axes", "zip", "sweeps", "measure", "systems", "references", "accuracy")
    over = {key: own[key] for key in tables if isinstance(own.get(key), dict)}
    over |= {key: own[key] for key in ("reference", "compare") if key in own}
    profiles, default = subtable(base, "profiles"), base.get("default_profile")
    if "default_profile" in own or not over or not isinstance(default, str):
        return dict(base)
    if not isinstance(inherited := profiles.get(default), dict):
        return dict(base)
    return {**base, "profiles": {**profiles, default: lay_axes(inherited, over)}}
