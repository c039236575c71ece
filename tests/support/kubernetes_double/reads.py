"""Answers reads: objects, lists in pages, and what a watch sends."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from tests.support.kubernetes_double import status
from tests.support.kubernetes_double.requests import Received, Target
from tests.support.kubernetes_double.selectors import Selects, selects
from tests.support.kubernetes_double.storage import Change, Object, Storage

LONGEST_WATCH = 1800.0
BOOKMARK_SECONDS = 60.0
BOOKMARK_BEFORE = 2.0
"""This many seconds before its end a watch gets a last bookmark."""
LARGE_SECONDS = 3.0
"""How long a list waits for a version that has not been reached."""
IDENTITY = ("apiVersion", "kind")
INITIAL_END = "k8s.io/initial-events-end"
MATCH = "resourceVersionMatch"
TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start "
    "a new list without the continue parameter, or use the continue token in this response to "
    "retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)


class Reads:
    """All reads of a storage. `bookmark_seconds`: how often a quiet watch gets a bookmark."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._pages: dict[str, list[Object]] = {}
        self.bookmark_seconds = BOOKMARK_SECONDS
        self._muted = 0

    def mute(self) -> None:
        """Let the watches that run send nothing more, without an end."""
        self._muted += 1
        self._storage.wake()

    def get(self, request: Received) -> Object:
        """Return an object. Raises Refused."""
        target = request.target
        found = self._storage.get(target.key)
        if found is None:
            raise status.not_found(target.kind.group, target.kind.plural, target.name)
        return found

    def selected(self, request: Received) -> Iterator[Object]:
        """Yield the objects that a request selects, in the order of a list."""
        chosen = _chosen(request)
        namespace = request.target.namespace or None
        yield from filter(chosen, self._storage.of(request.target.kind, namespace))

    async def listed(self, request: Received) -> Object:
        """Return a list; if it needs a version that is not there, wait. Raises Refused."""
        wanted = 0 if request.query.get("continue") else _version(request)
        ends = asyncio.get_running_loop().time() + LARGE_SECONDS
        while wanted > self._storage.version and asyncio.get_running_loop().time() < ends:
            await self._storage.changed(max(0.001, ends - asyncio.get_running_loop().time()))
        return self.page(request)

    def page(self, request: Received) -> Object:
        """Return a list, or a page of it. Raises Refused."""
        limit, kind = request.number("limit") or 0, request.target.kind
        version, every = self._state(request)
        items, left = _taken(every, _chosen(request), limit)
        metadata: dict[str, Any] = {"resourceVersion": str(version)}
        if kind.custom:
            metadata["continue"] = ""
        if left:
            token = self._token(left, version)
            metadata["continue"] = token
            if not request.query.get("labelSelector") and not request.query.get("fieldSelector"):
                metadata["remainingItemCount"] = len(left)
        if not kind.custom:
            # The kind of a list says that of its items.
            items = [{name: one[name] for name in one if name not in IDENTITY} for one in items]
        return {
            "apiVersion": kind.api_version,
            "kind": f"{kind.kind}List",
            "metadata": metadata,
            "items": items,
        }

    def _state(self, request: Received) -> tuple[int, list[Object]]:
        """Return the version of a list, and all objects of which it selects. Raises Refused."""
        wanted, target = self.check_version(request), request.target
        if request.query.get("continue"):
            return self._continued(request)
        if request.query.get(MATCH) == "Exact":
            return wanted, [*self._at(target, wanted)]
        return self._storage.version, self._storage.of(target.kind, target.namespace or None)

    def _continued(self, request: Received) -> tuple[int, list[Object]]:
        token = request.query["continue"]
        if request.query.get("resourceVersion"):
            text = "specifying resource version is not allowed when using continue"
            raise status.bad_request(text)
        try:
            version = json.loads(base64.urlsafe_b64decode(token))["v"]
            items = self._pages[token]
        except (ValueError, KeyError):
            why = "continue key is not valid: illegal base64 data at input byte 0"
            raise status.bad_request(f"invalid continue token: {why}") from None
        if version < self._storage.compacted:
            raise self._too_old(request, items)
        return version, items

    def _too_old(self, request: Received, items: list[Object]) -> status.Refused:
        """Return the refusal of an old page, with a token for the rest of the present state."""
        kind, first = request.target.kind, _place(items[0])
        now = self._storage.of(kind, request.target.namespace or None)
        token = self._token([one for one in now if _place(one) >= first], self._storage.version)
        refused = status.Refused(410, TOO_OLD)
        refused.body["metadata"] = {"continue": token}
        return refused

    def _token(self, left: list[Object], version: int) -> str:
        token = base64.urlsafe_b64encode(
            json.dumps({"v": version, "left": len(left), "n": len(self._pages)}).encode()
        ).decode()
        self._pages[token] = left
        return token

    def _at(self, target: Target, version: int) -> Iterator[Object]:
        """Yield the objects of an earlier state. Raises Refused."""
        if version < self._storage.compacted:
            raise status.Refused(410, "The resourceVersion for the provided list is too old.")
        for key, found in self._storage.at(version).items():
            is_its = key[:2] == (target.kind.group, target.kind.plural)
            if is_its and target.namespace in ("", key[2]):
                yield found

    def check_version(self, request: Received) -> int:
        """Return the version that a list names, at most the newest; 0: none. Raises Refused."""
        wanted, match = _version(request), request.query.get(MATCH)
        following = request.query.get("continue")
        if match and not request.query.get("resourceVersion"):
            text = "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
            raise status.wrong_option("ListOptions", MATCH, text)
        if "sendInitialEvents" in request.query:
            text = "Forbidden: sendInitialEvents is forbidden for list"
            raise status.wrong_option("ListOptions", "sendInitialEvents", text)
        if wanted > self._storage.version and not following:
            raise status.too_large(wanted, self._storage.version)
        return wanted

    def check_watch(self, request: Received) -> int:
        """Return the version after which a watch begins; 0: any. Raises Refused."""
        match, initial = request.query.get(MATCH), "sendInitialEvents" in request.query
        text = ""
        if initial and match != "NotOlderThan":
            text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        elif match and not initial:
            text = (
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            )
        if text:
            raise status.wrong_option("ListOptions", MATCH, f"Forbidden: {text}")
        return _version(request)

    async def watch(self, request: Received) -> AsyncIterator[Object]:
        """Yield the events of a watch until its time is over. Raises Refused before the first.

        One from a version that has not been reached is silent until then.
        """
        wanted = self.check_watch(request)
        initial = wanted == 0 or request.flag("sendInitialEvents")
        seen = self._storage.version if initial else wanted
        try:
            self._storage.check_known(seen)
        except status.Refused as refused:
            yield {"type": "ERROR", "object": refused.body}
            return
        if initial:
            for found in [*self.selected(request)]:
                yield {"type": "ADDED", "object": found}
            if request.flag("allowWatchBookmarks"):
                yield self._bookmark(request.target, seen, **{INITIAL_END: "true"})
        async for event in self._following(request, seen):
            yield event

    async def _following(self, request: Received, seen: int) -> AsyncIterator[Object]:
        now = asyncio.get_running_loop().time
        seconds = request.number("timeoutSeconds")
        ends = now() + (seconds or LONGEST_WATCH)
        bookmark, began = self._next_bookmark(now(), ends), seen
        chosen, target = _chosen(request), request.target
        muted = self._muted
        while now() < ends:
            if muted != self._muted:
                await asyncio.get_running_loop().create_future()
            for change in self._storage.after(seen):
                seen = change.version
                if event := _event(change, target, chosen):
                    yield event
            if now() >= bookmark:
                bookmark = self._next_bookmark(now(), ends)
                if request.flag("allowWatchBookmarks") and seen > began:
                    yield self._bookmark(target, seen)
            if self._storage.version <= seen:
                # Not less: a loop whose time is virtual would stand still.
                await self._storage.changed(max(0.001, min(ends, bookmark) - now()))

    def _next_bookmark(self, now: float, ends: float) -> float:
        last = ends - BOOKMARK_BEFORE
        return min(last, now + self.bookmark_seconds) if last > now else ends + 1

    def _bookmark(self, target: Target, version: int, **annotations: str) -> Object:
        metadata: Object = {"resourceVersion": str(version)}
        if not target.kind.custom:
            metadata["creationTimestamp"] = None
        if annotations:
            metadata["annotations"] = annotations
        kind = target.kind
        found = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata}
        return {"type": "BOOKMARK", "object": found}


def _place(found: Object) -> tuple[str, str]:
    metadata = found["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def _version(request: Received) -> int:
    """Return the version that a request names; 0: none. Raises Refused."""
    text = request.query.get("resourceVersion", "")
    if not text or text.isdigit():
        return int(text or 0)
    why = f'Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
    cause = status.Cause("FieldValueInvalid", why, "resourceVersion")
    if request.verb == "watch":
        raise status.Refused(500, cause.shown, "")
    raise status.bad_request(f"invalid resource version: {cause.shown}")


def _taken(every: list[Object], chosen: Selects, limit: int) -> tuple[list[Object], list[Object]]:
    """Return the objects of a page, and all after it; it may be that none of those is selected."""
    items: list[Object] = []
    for place, one in enumerate(every):
        if chosen(one):
            items.append(one)
        if limit and len(items) >= limit:
            return items, every[place + 1 :]
    return items, []


def _chosen(request: Received) -> Selects:
    labels = request.query.get("labelSelector", "")
    fields = request.query.get("fieldSelector", "")
    return selects(labels, fields)


def _event(change: Change, target: Target, chosen: Selects) -> Object | None:
    """Return what a watch sends for a change: it sees objects enter and leave its selection."""
    kind = target.kind
    if change.key[:2] != (kind.group, kind.plural):
        return None
    if target.namespace and change.key[2] != target.namespace:
        return None
    before = change.before is not None and chosen(change.before)
    after = change.type != "DELETED" and chosen(change.object)
    if not before and not after:
        return None
    type_ = "MODIFIED" if before and after else "ADDED" if after else "DELETED"
    found = change.object
    if type_ == "DELETED" and change.type != "DELETED" and change.before is not None:
        version = {"resourceVersion": str(change.version)}
        found = {**change.before, "metadata": {**change.before["metadata"], **version}}
    return {"type": type_, "object": found}
