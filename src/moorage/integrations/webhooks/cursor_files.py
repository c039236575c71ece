"""The place of a hook in the feed, in a file that a crash leaves whole."""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from moorage.client.run.locks import locked_file
from moorage.client.run.private_file import write_private
from moorage.ownership import check_folder

LOCK = "notify.lock"


class InUseError(Exception):
    """Another process uses the folder: each post would be sent twice."""


@contextmanager
def only_user_of(folder: str) -> Iterator[None]:
    """Make a folder for places if it is missing, and refuse it to other processes meanwhile.

    Raises InUseError, UntrustedError: others could change the places; OSError: no place could be
    stored there.
    """
    lock = os.path.join(folder, LOCK)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    check_folder(folder, "`chmod go-w` it, or name a folder that is not there yet")
    with ExitStack() as held:
        try:
            held.enter_context(locked_file(lock, wait=False))
        except BlockingIOError:
            raise InUseError(
                f"{folder} is in use by another process, which holds {lock}; stop it first"
            ) from None
        _tried(folder)
        yield


def _tried(folder: str) -> None:
    """Write a file there, which nobody sees. Raises OSError, with the folder as its file."""
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            file.write(b"x")
    except OSError as error:
        raise OSError(error.errno, error.strerror, folder) from None


class Place(NamedTuple):
    """After which change to go on; `seen` is the newest time of an event that was posted."""

    cursor: str
    seen: datetime | None = None


class CursorFile:
    """The file of one hook."""

    def __init__(self, folder: str, hook: str) -> None:
        self.folder = folder
        self._path = Path(folder) / f"{hook}.cursor"

    def read(self) -> Place | None:
        """Return the place; None: there is no file. Raises OSError, ValueError."""
        try:
            text = self._path.read_text()
        except FileNotFoundError:
            return None
        try:
            found = json.loads(text)
            seen = found["seen"]
            return Place(
                str(found["cursor"]), None if seen is None else datetime.fromisoformat(seen)
            )
        except (KeyError, TypeError, ValueError):
            raise ValueError(f"{self._path} is not a place in the feed: remove it") from None

    def write(self, place: Place) -> None:
        """Replace the place. Raises OSError."""
        seen = None if place.seen is None else place.seen.isoformat()
        write_private(str(self._path), json.dumps({"cursor": place.cursor, "seen": seen}) + "\n")
