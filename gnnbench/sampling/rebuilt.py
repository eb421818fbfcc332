"""Pickling by constructor arguments."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Self


class RebuiltFromArguments:
    """An object that is pickled as its constructor arguments and built anew from them.

    A copy in another process therefore shares no buffers with the original.
    """

    _built_with: tuple[tuple[object, ...], dict[str, object]]

    def __new__(cls, *arguments: object, **options: object) -> Self:
        """Create an object that remembers its constructor arguments."""
        instance = super().__new__(cls)
        instance._built_with = (arguments, options)
        return instance

    def __reduce__(self) -> tuple[partial[Self], tuple[object, ...]]:
        arguments, options = self._built_with
        return partial(type(self), **options), arguments
