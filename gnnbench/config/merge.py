"""Definitions as they are read, before anything is validated: tables laid over one another."""

from __future__ import annotations

from gnnbench.schema.run_record import JsonObject

Raw = JsonObject


def flattened(table: Raw) -> Raw:
    """Nested tables by paths; a stage written as a table has its name under ``name``."""
    flat: Raw = {}
    for key, value in table.items():
        if isinstance(value, dict):
            inner = flattened(value)
            if "name" in inner:
                flat[key] = inner.pop("name")
            flat |= {f"{key}.{k}": v for k, v in inner.items()}
        else:
            flat[key] = value
    return flat


def with_paths(raw: Raw) -> Raw:
    """A partial definition whose axes and systems' settings are written by paths."""
    raw = dict(raw)
    for table in ("axes", "zip"):
        if isinstance(raw.get(table), dict):
            raw[table] = flattened(raw[table])
    for table, inner in (
        ("systems", flattened),
        ("sweeps", flattened),
        ("profiles", with_paths),
    ):
        if isinstance(raw.get(table), dict):
            raw[table] = {
                name: inner(value) if isinstance(value, dict) else value
                for name, value in raw[table].items()
            }
    return raw


def merge(base: Raw, over: Raw) -> Raw:
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


def _table(raw: Raw, key: str) -> Raw:
    """A table, empty where there is none; one of another type is refused when it is validated."""
    inner = raw.get(key, {})
    return inner if isinstance(inner, dict) else {}


def lay_axes(raw: Raw, over: Raw) -> Raw:
    """``merge`` in which an axis that moves between [axes] and [zip] leaves its old place."""
    raw = dict(raw)
    for here, there in (("axes", "zip"), ("zip", "axes")):
        raw[there] = {k: v for k, v in _table(raw, there).items() if k not in _table(over, here)}
    return merge(raw, over)


def laid_on_default(base: Raw, own: Raw) -> Raw:
    """``base`` with what an heir says itself laid on the default profile that it inherits.

    Else a run that names no profile would have that profile's axes in place of the heir's. An heir
    that names its default, and a run that names a profile, mean it as it stands.
    """
    tables = ("axes", "zip", "sweeps", "measure", "systems", "references", "accuracy")
    over = {key: own[key] for key in tables if isinstance(own.get(key), dict)}
    over |= {key: own[key] for key in ("reference", "compare") if key in own}
    profiles, default = base.get("profiles"), base.get("default_profile")
    if "default_profile" in own or not isinstance(profiles, dict):
        return base
    if not over or not isinstance(default, str) or not isinstance(profiles.get(default), dict):
        return base
    return {**base, "profiles": {**profiles, default: lay_axes(profiles[default], over)}}
