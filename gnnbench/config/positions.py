"""Where in which file a definition's value stands, for errors that are found after it is read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import JsonValue

from gnnbench.config import experiment as definitions
from gnnbench.config.merge import subtable
from gnnbench.core.errors import SettingError, UsageError


@contextmanager
def placed(definition: str, profile: str, typed: dict[str, JsonValue]) -> Iterator[None]:
    """Put file and place before a ``SettingError``, unless the value was ``typed``.

    ``typed`` is the partial definition that the command line makes, ``profile`` the one that is
    run, "" for none.
    """
    try:
        yield
    except SettingError as error:
        if _table(typed, error.key) is not None or not (
            at := place(definition, profile, error.key)
        ):
            raise
        raise UsageError(f"{at}: {error}") from None


def place(definition: str, profile: str, key: str) -> str:
    """The file and the table that a value is from: ``'mine.toml', [axes] batch_size``; or ""."""
    for path, raw in definitions.files(definition):
        of_profile = subtable(subtable(raw, "profiles"), profile)
        for prefix, part in ((f"profiles.{profile}", of_profile), ("", raw)):
            if (table := _table(part, key)) is not None:
                name, last = table
                full = ".".join(filter(None, (prefix, name)))
                return f"'{path.name}', {f'[{full}] ' if full else ''}{last}"
    return ""


def _table(raw: dict[str, JsonValue], key: str) -> tuple[str, str] | None:
    """The table of a partial definition that sets a key, and what the key is called in it.

    An axis goes before the setting of a system, as in the grid.
    """
    sweeps = subtable(raw, "sweeps")
    tables = {"axes": subtable(raw, "axes"), "zip": subtable(raw, "zip")}
    tables |= {f"sweeps.{name}": subtable(sweeps, name) for name in sweeps}
    for name, table in tables.items():
        if key in table:
            return name, key
    system, _, path = key.partition(".")
    if path and path in subtable(subtable(raw, "systems"), system):
        return f"systems.{system}", path
    return ("", key) if key in raw else None
