"""A copy of a list that follows the cluster: all objects are listed, then watched, then listed.

A watch begins at the version of the list before it, so it misses nothing. The next list corrects
what a watch that has silently broken off did not report. A watch from a version that the cluster
has not reached is silent until then, so after each break the newest version is asked for: a cluster
that was restored from a backup has an older one. Between two versions of a resource the
greater number is the newer one, as Kubernetes' API conventions say.
"""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from types import TracebackType
from typing import Self

from moorage.client.agent.backoff import Backoff
from moorage.integrations.clock import monotonic
from moorage.integrations.kubernetes.api import (
    KubernetesApi,
    KubernetesError,
    Object,
    is_object,
    whole,
)

LIST_SECONDS = 60.0
"""How often all objects are listed, by default."""

STALE_SECONDS = 15.0
"""How long the copy may be used after its watch has ended, and no other one has begun."""

STEADY_SECONDS = 5.0
"""A watch that has lasted this long is no failed attempt."""

SILENT_SECONDS = 90.0
"""How long a watch may be silent: API servers send a bookmark about every minute."""

FIRST_DELAY_SECONDS = 0.5
DELAY_SECONDS_MAX = 20.0
"""Delays after failed attempts."""

DIGITS_MAX = 20
"""Of a version, which is a number of 64 bits."""

OLDER_MAX = 2
"""This many lists in a row that are older than the copy show that the cluster was restored."""

SLOW = "it takes too long"
"""Why the copy is stale, unless an error says it."""

log = logging.getLogger("moorage.kubernetes")


class EarlierError(KubernetesError):
    """The cluster is in an earlier state than before: it was restored from a backup."""


class StaleError(KubernetesError):
    """The copy cannot be used: it is not read yet, or nothing was heard of it for too long."""


class Mirror:
    """The objects of one list, as of a moment ago. An async context manager: it follows them."""

    def __init__(
        self,
        api: KubernetesApi,
        path: str,
        matter: Callable[[Object], object] = lambda one: one,
        seconds: float = LIST_SECONDS,
        kept: Callable[[Object], Object] = whole,
    ) -> None:
        """Prepare to follow.

        Args:
            api: the cluster.
            path: that of the list.
            matter: what of an object matters; `changed` is set if it has become another.
            seconds: how often all objects are listed.
            kept: what is kept of an object, without its `managedFields`; its metadata must be.
        """
        self._api = api
        self._path = path
        self._matter = matter
        self._kept = kept
        self._seconds = seconds
        self._objects: dict[tuple[str, str], Object] = {}
        self._version: int | None = None
        """The newest version that is known; None: nothing was listed yet."""
        self._older = 0
        """How many lists in a row were older than that."""
        self._watching = False
        self._ended = 0.0
        """When the last watch has ended that was no failed attempt."""
        self._trouble = SLOW
        self.tried = asyncio.Event()
        """Is set when the first list was read, or could not be read."""
        self._delays = Backoff(FIRST_DELAY_SECONDS, DELAY_SECONDS_MAX)
        self.changed = asyncio.Event()
        """Is set when something has changed that matters; clear it before you use the objects."""

    async def __aenter__(self) -> Self:
        self._ended = monotonic()
        self._task = asyncio.create_task(self._run(), name="mirror")
        self._task.add_done_callback(lambda _: self.tried.set())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    @property
    def is_watching(self) -> bool:
        """Whether the server reports changes now."""
        return self._watching

    def objects(self) -> list[Object]:
        """Return the objects by their names. Raises StaleError."""
        if self._task.done():
            self._task.result()  # it never ends by itself, except by a fault
        if self._version is None:
            raise StaleError(
                f"{self._path} of {self._api.url} has not been read yet: {self._trouble}"
            )
        if not self._watching and (since := monotonic() - self._ended) > STALE_SECONDS:
            raise StaleError(
                f"{self._path} of {self._api.url} has not been heard of for {since:.0f} s:"
                f" {self._trouble}"
            )
        return [one for _, one in sorted(self._objects.items())]

    async def _run(self) -> None:
        while True:
            try:
                await self._list()
                await self._follow(monotonic() + self._seconds * random.uniform(0.9, 1.1))
            except KubernetesError as error:
                await self._rest(str(error))

    async def _rest(self, trouble: str) -> None:
        """Wait after a failed attempt."""
        if trouble != self._trouble:
            log.info("%s", trouble)
        self._trouble = trouble
        self.tried.set()
        await asyncio.sleep(self._delays.next())

    async def _list(self) -> None:
        """Replace all objects by those of a list."""
        listed = await self._api.listed(self._path, self._trimmed)
        version = self._number(listed.version)
        if self._version is not None and version < self._version:
            # It began after that version was seen, so the history of the cluster is another one.
            self._older += 1
            if self._older < OLDER_MAX:
                raise self._earlier(version)
            log.warning("the state of %s was restored: it is read again", self._api.url)
        self._older = 0
        before, self._objects = self._objects, {_name(one): one for one in listed.objects}
        self._version = version
        if before.keys() != self._objects.keys() or any(
            self._differs(before[name], one) for name, one in self._objects.items()
        ):
            self.changed.set()
        self.tried.set()

    def _earlier(self, version: int) -> EarlierError:
        return EarlierError(
            f"{self._api.url} is in an earlier state than before: {version} comes before"
            f" {self._version}"
        )

    async def _check_state(self) -> None:
        """Raise EarlierError if the cluster has not reached the newest version that is known."""
        version = self._number(await self._api.newest_version(self._path))
        if version < (self._version or 0):
            raise self._earlier(version)

    async def _follow(self, until: float) -> None:
        """Watch until a time; a watch that breaks off is continued where it was."""
        is_broken = False
        while (left := until - monotonic()) > 0:
            began = monotonic()
            try:
                if is_broken:
                    await self._check_state()
                await self._watch(left)
                trouble = "a watch has ended early"
            except KubernetesError as error:
                if error.status is not None or isinstance(error, EarlierError):
                    raise  # it was refused: only a list says where to go on
                trouble = str(error)
            is_broken = True
            if monotonic() < min(until, began + STEADY_SECONDS):
                await self._rest(trouble)

    async def _watch(self, seconds: float) -> None:
        began = None
        try:
            async with self._api.watch(
                self._path, str(self._version), seconds, min(SILENT_SECONDS, seconds + 10)
            ) as events:
                began, self._watching = monotonic(), True
                await self._apply(events)
        finally:
            self._watching = False
            if began is not None and monotonic() - began >= STEADY_SECONDS:
                self._ended, self._trouble = monotonic(), SLOW
                self._delays.reset()

    async def _apply(self, events: AsyncIterator[Object]) -> None:
        async for event in events:
            found = event.get("object")
            kind, one = event.get("type"), found if isinstance(found, dict) else {}
            if kind == "ERROR":
                status = one.get("code")
                raise KubernetesError(
                    f"{self._api.url} ends a watch: {one.get('message')}",
                    status if isinstance(status, int) else HTTPStatus.INTERNAL_SERVER_ERROR,
                    str(one.get("reason") or ""),
                )
            if kind not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
                continue  # a newer Kubernetes may have more; the next list shows what came of it
            metadata = one.get("metadata")
            if not isinstance(metadata, dict) or (kind != "BOOKMARK" and not is_object(one)):
                raise KubernetesError(f"{self._api.url} is not Kubernetes: an event has no object")
            version = self._number(str(metadata.get("resourceVersion")))
            if version <= (self._version or 0):
                continue  # what is known already is newer
            self._version = version
            if kind != "BOOKMARK":
                self._put(one, deleted=kind == "DELETED")

    def _put(self, one: Object, *, deleted: bool) -> None:
        name = _name(one)
        before = self._objects.pop(name, None)
        if not deleted:
            self._objects[name] = one = self._trimmed(one)
        if (before is None) != deleted or (before is not None and self._differs(before, one)):
            self.changed.set()

    def _trimmed(self, one: Object) -> Object:
        """Return an object without who has written which field, which is about half of it."""
        whole = one["metadata"]
        metadata = {name: value for name, value in whole.items() if name != "managedFields"}
        return {**self._kept(one), "metadata": metadata}

    def _differs(self, before: Object, after: Object) -> bool:
        return self._matter(before) != self._matter(after)

    def _number(self, version: str) -> int:
        if not version.isdecimal() or len(version) > DIGITS_MAX:
            raise KubernetesError(
                f"{self._api.url}: '{version[:40]}' is not a number, so versions cannot be compared"
            )
        return int(version)


def _name(one: Object) -> tuple[str, str]:
    """Return by what an object is known: one with the same name replaces it."""
    return str(one["metadata"].get("namespace")), str(one["metadata"]["name"])
