"""An exception of another process, in a form that can be sent."""

from __future__ import annotations

import pickle
from dataclasses import dataclass


@dataclass(frozen=True)
class RemoteFailure:
    """A request has failed: the pickled exception, if it can be pickled, and its description."""

    error: bytes | None
    description: str

    @classmethod
    def by(cls, error: BaseException) -> RemoteFailure:
        """Build the message for an exception."""
        description = f"{type(error).__name__}: {error}"
        try:
            pickled = pickle.dumps(error)
            pickle.loads(pickled)  # exceptions with their own constructor may not unpickle
        except Exception:
            return cls(None, description)
        return cls(pickled, description)

    def exception(self) -> BaseException:
        """Return the exception, or a ``RuntimeError`` with its description if that fails."""
        try:
            error = pickle.loads(self.error) if self.error is not None else None
        except Exception:
            error = None
        return error if isinstance(error, BaseException) else RuntimeError(self.description)
