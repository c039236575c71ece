"""The place of a hook in the feed, in a file that a crash leaves whole."""

import json
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from moorage.client.run.private_file import write_private


class Place(NamedTuple):
    """After which change to go on; `seen` is the newest time of an event that was posted."""

    cursor: str
    seen: datetime | None = None


class CursorFile:
    """The file of one hook."""

    def __init__(self, folder: str, hook: str) -> None:
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
