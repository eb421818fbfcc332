"""The table of downloadable sources (``datasets/downloads/sources.toml``)."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from gnnbench.core.errors import UsageError
from gnnbench.datasets.paths import share_dir

TABLE = Path("downloads") / "sources.toml"


class Download(BaseModel):
    """One source; the head of the table explains the fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    url: str = Field(pattern=r"^https?://")
    host: str
    licence: str
    to: str = ""
    symmetric: bool = False
    sha256: str = Field("", pattern=r"^([0-9a-f]{64})?$")

    @field_validator("to")
    @classmethod
    def _below_raw(cls, to: str) -> str:
        path = PurePosixPath(to)
        if path.is_absolute() or ".." in path.parts:
            raise ValueError(f"to = '{to}' leaves the folder of raw files")
        return to

    @field_validator("url")
    @classmethod
    def _names_a_file(cls, url: str) -> str:
        if urlsplit(url).path.rpartition("/")[2] in ("", ".", ".."):
            raise ValueError(f"url = '{url}' names no file")
        return url

    @property
    def file(self) -> str:
        """File name at the end of the URL."""
        return urlsplit(self.url).path.rpartition("/")[2]


def read_table(path: Path) -> dict[str, Download]:
    """Sources by name. Raises ``UsageError`` for a malformed table."""
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8"))["download"]
        sources = [Download.model_validate(entry) for entry in entries]
    except (OSError, ValueError, KeyError, TypeError) as error:
        detail = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
        raise UsageError(f"cannot read the sources in {path} ({detail}); correct it") from None
    table = {source.name: source for source in sources}
    if len(table) != len(sources):
        raise UsageError(f"{path} names a source twice; correct it")
    return table


@lru_cache(maxsize=1)
def _shipped() -> dict[str, Download]:
    return read_table(share_dir("datasets") / TABLE)


def downloads() -> dict[str, Download]:
    """The shipped sources by name."""
    return dict(_shipped())
