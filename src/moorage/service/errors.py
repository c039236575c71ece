"""Translates StoreError into Error."""

from collections.abc import Iterator
from contextlib import contextmanager

from moorage.core.errors import Code, Error
from moorage.store.api import StoreError, Unusable


@contextmanager
def translated() -> Iterator[None]:
    """Turn StoreError into `Error`: INVALID for Unusable, otherwise UNAVAILABLE."""
    try:
        yield
    except Unusable as error:
        raise Error(Code.INVALID, str(error)) from error
    except StoreError as error:
        raise Error(Code.UNAVAILABLE, f"The database cannot answer now: {error}.") from error
