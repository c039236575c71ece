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
INITIAL_END = "k8s.io/initial-events-end"


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

    def page(self, request: Received) -> Object:
        """Return a list, or a page of it. Raises Refused."""
        limit, kind = request.number("limit") or 0, request.target.kind
        if request.query.get("continue"):
            version, items = self._continued(request.query["continue"])
        else:
            self.check_version(request)
            version, items = self._storage.version, [*self.selected(request)]
        metadata: dict[str, Any] = {"resourceVersion": str(version)}
        if limit and len(items) > limit:
            items, left = items[:limit], items[limit:]
            token = base64.urlsafe_b64encode(
                json.dumps({"v": version, "left": len(left), "n": len(self._pages)}).encode()
            ).decode()
            self._pages[token] = left
            metadata["continue"] = token
            if not request.query.get("labelSelector") and not request.query.get("fieldSelector"):
                metadata["remainingItemCount"] = len(left)
        return {
            "apiVersion": kind.api_version,
            "kind": f"{kind.kind}List",
            "metadata": metadata,
            "items": items,
        }

    def _continued(self, token: str) -> tuple[int, list[Object]]:
        try:
            version = json.loads(base64.urlsafe_b64decode(token))["v"]
            items = self._pages[token]
        except (ValueError, KeyError):
            raise status.bad_request("continue key is not valid") from None
        if version < self._storage.compacted:
            text = "The provided continue parameter is too old to display a consistent list result."
            raise status.Refused(410, text)
        return version, items

    def check_version(self, request: Received) -> int:
        """Return the version that a request names, at most the newest. Raises Refused."""
        wanted = request.number("resourceVersion") or 0
        if request.query.get("resourceVersionMatch") == "Exact":
            raise status.bad_request("the double has no lists of exact versions")
        if wanted > self._storage.version:
            text = f"Too large resource version: {wanted}, current: {self._storage.version}"
            causes = [
                {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
            ]
            raise status.Refused(504, text, causes=causes, retryAfterSeconds=1)
        return wanted

    async def watch(self, request: Received) -> AsyncIterator[Object]:
        """Yield the events of a watch until its time is over. Raises Refused before the first."""
        wanted = self.check_version(request)
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
            if request.flag("sendInitialEvents"):
                yield self._bookmark(request.target, seen, **{INITIAL_END: "true"})
        async for event in self._following(request, seen):
            yield event

    async def _following(self, request: Received, seen: int) -> AsyncIterator[Object]:
        now = asyncio.get_running_loop().time
        seconds = request.number("timeoutSeconds")
        ends = now() + (seconds or LONGEST_WATCH)
        bookmark = now() + self.bookmark_seconds
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
                bookmark = now() + self.bookmark_seconds
                if request.flag("allowWatchBookmarks"):
                    yield self._bookmark(target, seen)
            if self._storage.version == seen:
                # Not less: a loop whose time is virtual would stand still.
                await self._storage.changed(max(0.001, min(ends, bookmark) - now()))
        if request.flag("allowWatchBookmarks"):
            yield self._bookmark(target, seen)

    def _bookmark(self, target: Target, version: int, **annotations: str) -> Object:
        metadata: Object = {"resourceVersion": str(version), "creationTimestamp": None}
        if annotations:
            metadata["annotations"] = annotations
        kind = target.kind
        found = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata}
        return {"type": "BOOKMARK", "object": found}


def _chosen(request: Received) -> Selects:
    labels = request.query.get("labelSelector", "")
    fields = request.query.get("fieldSelector", "")
    if request.target.name and request.verb == "watch":
        fields = f"metadata.name={request.target.name}"
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
