"""Translates StoreError into Error."""

from contextlib import AbstractContextManager
from types import TracebackType

from moorage.core.errors import Code, Error
from moorage.store.api import Damaged, StoreError, Unusable


class DamagedError(Error):
    """A row that the request needs cannot be read; other requests may succeed."""

    def __init__(self, damaged: Damaged) -> None:
        super().__init__(Code.UNAVAILABLE, f"The database cannot answer: {damaged}.")


class _Translation(AbstractContextManager[None]):
    """A class, not a generator: every request enters it, and this takes a third of the time."""

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, Unusable):
            raise Error(Code.INVALID, str(error)) from error
        if isinstance(error, Damaged):
            raise DamagedError(error) from error
        if isinstance(error, StoreError):
            raise Error(Code.UNAVAILABLE, f"The database cannot answer now: {error}.") from error


_TRANSLATION = _Translation()


def translated() -> AbstractContextManager[None]:
    """Turn StoreError into `Error`: INVALID for Unusable, otherwise UNAVAILABLE (DamagedError)."""
    return _TRANSLATION
