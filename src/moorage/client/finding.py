"""The typed native API that finds things of all rooms by a text."""

from __future__ import annotations

from moorage.client.calling import Room
from moorage.wire.finding import Findings
from moorage.wire.operations import finding


class Finder(Room):
    """Finds what the caller may list."""

    def find(self, text: str, limit: int = 10) -> Findings:
        """Return what a text finds, at most `limit` things of each kind. Raises RefusedError."""
        return self._call(finding.FIND, query={"text": text, "limit": limit})
