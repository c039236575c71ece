"""The changes of hosts that a pass makes itself: of pauses, and of counts of failures.

A host that the API server does not let change must not stop the passes over others, nor make them
slow: its owner can fill its annotations up to their limit, and webhooks judge the whole host, or do
not answer. Nor must one of a namespace in which we have no rights.

A pass does not depend on what became of a change: the next ones see the host as it is stored. Each
change is refused if the host was changed meanwhile. So a late answer needs no pass to wait for it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Container
from dataclasses import dataclass
from functools import partial

from moorage.integrations.bounded import run_bounded
from moorage.integrations.clock import monotonic
from moorage.integrations.kubernetes.api import KubernetesError
from moorage.integrations.metal3.hosts import BareMetalHost, name_of, uid_of

Change = Callable[[BareMetalHost], Awaitable[bool]]
"""Changes a host, and returns whether it did. Raises KubernetesError."""

CHANGES_MAX = 8
"""Hosts that are changed at the same time, as far as the pass waits for them."""

PASS_SECONDS = 5.0
"""How long a pass waits for answers. Changes that were not begun follow in later passes."""

AGAIN_SECONDS = 0.5
"""How long it waits for the answer about a host that could not be changed before."""

REFUSED_SECONDS = 60.0
"""How long a host is left alone after the API server refused to change it."""

log = logging.getLogger("moorage.metal3")


@dataclass(frozen=True)
class _Refused:
    """Why a host could not be changed, and until when it is not tried again."""

    until: float
    why: str
    told: bool
    """Whether the log says it."""


class Changes:
    """The changes of the hosts of one cluster."""

    def __init__(self) -> None:
        self._refused: dict[str, _Refused] = {}
        """Hosts that could not be changed, by UID."""
        self._unanswered: dict[str, asyncio.Task[None]] = {}
        """By UID."""

    @property
    def remarks(self) -> dict[str, str]:
        """Why hosts could not be changed, by UID."""
        return {
            uid: f"its pause cannot be changed: {one.why}" for uid, one in self._refused.items()
        }

    async def make(self, wanted: Collection[tuple[BareMetalHost, Change]]) -> None:
        """Make these changes. Raises KubernetesError: the server does not answer anybody."""
        until = monotonic() + PASS_SECONDS
        due = [one for one in wanted if self._may_be_changed(uid_of(one[0]))]
        due.sort(key=lambda one: uid_of(one[0]) in self._refused)
        await run_bounded(CHANGES_MAX, [partial(self._begin, *one, until) for one in due])

    async def close(self) -> None:
        """Return when all changes are answered."""
        await asyncio.gather(*self._unanswered.values(), return_exceptions=True)

    def forget(self, known: Container[str]) -> None:
        """Forget hosts that are gone, or that were not tried again; `known` are all UIDs."""
        past = monotonic() - REFUSED_SECONDS
        self._refused = {
            uid: one for uid, one in self._refused.items() if uid in known and one.until > past
        }

    def _may_be_changed(self, uid: str) -> bool:
        before = self._refused.get(uid)
        return uid not in self._unanswered and (before is None or monotonic() >= before.until)

    async def _begin(self, host: BareMetalHost, change: Change, until: float) -> None:
        """Begin a change, and wait for its answer as long as the pass may."""
        uid, seconds = uid_of(host), until - monotonic()
        if seconds <= 0 or uid in self._unanswered:
            return
        if uid in self._refused:
            seconds = min(seconds, AGAIN_SECONDS)
        task = self._unanswered[uid] = asyncio.create_task(self._make(host, change))
        task.add_done_callback(lambda _: self._unanswered.pop(uid))
        try:
            await asyncio.wait([task], timeout=seconds)
        finally:
            if not task.done():
                task.add_done_callback(partial(self._late, host))
        if task.done():
            task.result()

    async def _make(self, host: BareMetalHost, change: Change) -> None:
        """Change a host. What only it has to itself is no error.

        A right that is denied perhaps only until the server knows it is tried again at once.
        """
        try:
            if not await change(host):
                return
        except KubernetesError as error:
            yet = error.is_denied_yet
            if error.is_of_server and not yet:
                raise
            self._refuse(host, error, yet=yet)
            return
        self._refused.pop(uid_of(host), None)

    def _late(self, host: BareMetalHost, task: asyncio.Task[None]) -> None:
        """Note the end of a change for which no pass waits any more."""
        error = None if task.cancelled() else task.exception()
        if isinstance(error, KubernetesError):
            self._refuse(host, error, yet=False)
        elif error is not None:
            raise error

    def _refuse(self, host: BareMetalHost, error: KubernetesError, *, yet: bool) -> None:
        uid, now = uid_of(host), monotonic()
        told = uid in self._refused and self._refused[uid].told
        if not yet and not told:
            log.warning("the pause of %s cannot be changed: %s", name_of(host), error)
        until = now if yet else now + REFUSED_SECONDS
        self._refused[uid] = _Refused(until, str(error), told=told or not yet)
