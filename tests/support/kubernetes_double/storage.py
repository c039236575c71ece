"""The objects, one rising version for all of them, and the history that watches read."""

import asyncio
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

from tests.support.kubernetes_double import status
from tests.support.kubernetes_double.kinds import Kind

Object = dict[str, Any]
Key = tuple[str, str, str, str]
"""Group, plural, namespace (empty: none), name."""

FIRST = 1000
"""The version before the first write. Versions are compared as numbers, and start higher than 0."""


@dataclass(frozen=True)
class Change:
    """One write: ADDED, MODIFIED or DELETED. Objects are never changed in place."""

    version: int
    key: Key
    type: str
    object: Object
    before: Object | None


class Storage:
    """What survives a restart of the server, as etcd does."""

    def __init__(self) -> None:
        self.version = FIRST
        self.compacted = FIRST
        self.history: list[Change] = []
        self._objects: dict[Key, Object] = {}
        self._changed = asyncio.Event()

    def get(self, key: Key) -> Object | None:
        """Return an object; None: there is none."""
        return self._objects.get(key)

    def of(self, kind: Kind, namespace: str | None = None) -> list[Object]:
        """Return all objects of a kind by namespace and name; None: of all namespaces."""
        return [
            found
            for key, found in sorted(self._objects.items())
            if key[:2] == (kind.group, kind.plural) and namespace in (None, key[2])
        ]

    def write(self, key: Key, new: Object | None) -> Object:
        """Store an object with a new version, or remove it (None); return what was stored last."""
        before = self._objects.get(key)
        self.version += 1
        stored = dict(new if new is not None else before or {})
        stored["metadata"] = {**stored["metadata"], "resourceVersion": str(self.version)}
        if new is None:
            type_ = "DELETED"
            del self._objects[key]
        else:
            type_ = "ADDED" if before is None else "MODIFIED"
            self._objects[key] = stored
        self.history.append(Change(self.version, key, type_, stored, before))
        self.wake()
        return stored

    def forget(self) -> None:
        """Forget the history: new watches of older versions, and pages of older lists, get 410.

        A server forgets it when it starts, or after many writes. The compaction of etcd alone does
        not do that: the server has its own copy.
        """
        self.compacted = self.version

    def check_known(self, version: int) -> None:
        """Refuse a version after which changes are forgotten. Raises Refused."""
        if version < self.compacted:
            raise status.expired(version, self.compacted)

    def after(self, version: int) -> list[Change]:
        """Return the changes after a version, also forgotten ones: running watches go on."""
        at = bisect_right(self.history, version, key=lambda change: change.version)
        return self.history[at:]

    def at(self, version: int) -> dict[Key, Object]:
        """Return all objects as of an earlier version."""
        found = dict(self._objects)
        for change in reversed(self.after(version)):
            if change.before is None:
                found.pop(change.key, None)
            else:
                found[change.key] = change.before
        return dict(sorted(found.items()))

    def restore(self, version: int) -> None:
        """Go back to an earlier version, as a restored backup does."""
        self._objects = self.at(version)
        self.history = [change for change in self.history if change.version <= version]
        self.version = self.compacted = version

    def wake(self) -> None:
        """Let everyone look who waits for a change."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def changed(self, seconds: float) -> None:
        """Return when something has been written, or when this much time has passed."""
        try:
            await asyncio.wait_for(self._changed.wait(), seconds)
        except TimeoutError:
            return
