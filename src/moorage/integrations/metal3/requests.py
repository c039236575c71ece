"""Reads BareMetalHosts, changes our own annotations of them, and creates events about them."""

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from moorage.integrations.kubernetes.api import KubernetesApi, KubernetesError
from moorage.integrations.metal3.failures import FAILURES, error_kind_of, failed_again
from moorage.integrations.metal3.holds import Holds
from moorage.integrations.metal3.hosts import (
    OWN,
    PAUSED,
    WAITING,
    BareMetalHost,
    is_same_but_for_note,
    name_of,
    occupies,
    pause_of,
)
from moorage.integrations.metal3.mirror import GROUP, HostMirror, list_path
from moorage.integrations.provisioning.start import Start, StartResult
from moorage.integrations.provisioning.unit_release import RequestOutcome, outcome_of

HOST_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?/[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
"""A name as `name_of` returns it. Others would be other paths, such as with `/../`."""


UNPAUSED = {PAUSED: None, WAITING: None}
"""Removes our pause, and the note with the reason for waiting."""


class HostRequests:
    """Requests about the hosts of one cluster. Every call raises KubernetesError."""

    def __init__(
        self, api: KubernetesApi, namespace: str | None = None, mirror: HostMirror | None = None
    ) -> None:
        """Prepare to ask; `namespace` None: hosts of all namespaces. `mirror` has the same."""
        self._api = api
        self._list = list_path(namespace)
        self.holds = Holds(api)
        self._mirror = mirror

    async def all(self) -> list[BareMetalHost]:
        """Return all hosts: of a moment ago by the mirror, without one as `now` does."""
        return await self.now() if self._mirror is None else self._mirror.hosts()

    async def now(self) -> list[BareMetalHost]:
        """Return all hosts, in one state of the cluster that is not older than the request."""
        return await self._api.all(self._list)

    async def again(self, host: BareMetalHost) -> BareMetalHost | None:
        """Return a host as it is now; None: it is gone, also if another one has its name."""
        return await self.named(name_of(host), str(host["metadata"]["uid"]))

    async def named(self, name: str, uid: str) -> BareMetalHost | None:
        """Return the host with this name (`namespace/name`) and UID as it is now; None: gone."""
        return await self._same(_path(name), uid)

    async def read(self, start: Start) -> BareMetalHost | None:
        """Return the host of a start as it is now."""
        return await self._same(str(start.body["path"]), start.host.uuid)

    async def _same(self, path: str, uid: str) -> BareMetalHost | None:
        host = await self._api.get(path)
        return host if host is not None and host["metadata"].get("uid") == uid else None

    def works(self, host: BareMetalHost) -> bool:
        """Return whether it needs its unit: it works, or may begin to, without our pause."""
        return occupies(host) and pause_of(host) != OWN

    def is_locked(self, host: BareMetalHost) -> bool:
        """Return False: nothing locks a host."""
        return False

    async def send(self, start: Start) -> StartResult:
        """Remove our pause, unless the host was changed since it was read, or is held."""
        try:
            if (why := await self.holds.why_now(start.body["host"])) is not None:
                return StartResult(RequestOutcome.REFUSED, why, soon=True)
            await self._unpause_despite_note(start)
        except KubernetesError as error:
            soon = error.status == HTTPStatus.CONFLICT or error.may_pass
            return StartResult(outcome_of(error.status), str(error), soon=soon)
        return StartResult(outcome_of(HTTPStatus.OK))

    async def unpause(self, host: BareMetalHost) -> bool:
        """Remove our pause from a host; False: it is no longer as it was read, or gone."""
        return await self._changed(host, UNPAUSED)

    async def pause(self, host: BareMetalHost) -> bool:
        """Store our pause in a host, and how often it has failed; False as of `unpause`."""
        failures = {FAILURES: failed_again(host).text()} if error_kind_of(host) else {}
        return await self._changed(host, {PAUSED: OWN, **failures})

    async def forget_failures(self, host: BareMetalHost) -> bool:
        """Remove how often a host has failed; False as of `unpause`."""
        return await self._changed(host, {FAILURES: None})

    async def _changed(self, host: BareMetalHost, annotations: Mapping[str, str | None]) -> bool:
        try:
            await self._annotate(_path_of(host), host["metadata"]["resourceVersion"], annotations)
        except KubernetesError as error:
            if error.status not in (HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND):
                raise
            return False
        return True

    async def _annotate(
        self, path: str, version: str, annotations: Mapping[str, str | None]
    ) -> None:
        metadata = {"annotations": dict(annotations), "resourceVersion": version}
        await self._api.merge(path, {"metadata": metadata})

    async def _unpause_despite_note(self, start: Start) -> None:
        """Remove our pause from the host of a start, also if a note was written meanwhile."""
        path, before = str(start.body["path"]), start.body["host"]
        try:
            await self._annotate(path, str(start.body["version"]), UNPAUSED)
        except KubernetesError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise
            now = await self._unless_unknown(start)
            if now is not None and pause_of(now) is None:
                return  # another process was first, and the host needs the units of this start
            if now is None or not is_same_but_for_note(before, now):
                raise
            await self._annotate(path, now["metadata"]["resourceVersion"], UNPAUSED)

    async def _unless_unknown(self, start: Start) -> BareMetalHost | None:
        """Return the host of a start as it is now; None: it is gone, or there is no answer."""
        try:
            return await self.read(start)
        except KubernetesError:
            return None

    async def note(self, host: BareMetalHost, text: str | None) -> bool:
        """Let a host say why it waits, or nothing (None); False: it is not as it was read."""
        try:
            await self._annotate(
                _path_of(host), host["metadata"]["resourceVersion"], {WAITING: text}
            )
        except KubernetesError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise
            return False
        return True

    async def create_event(self, event: Mapping[str, Any]) -> None:
        """Create an event in the namespace that it names."""
        namespace = event["metadata"]["namespace"]
        await self._api.create(f"/api/v1/namespaces/{namespace}/events", event)


def body_of(host: BareMetalHost) -> Mapping[str, Any]:
    """Return what a start needs to know of its host."""
    version = host["metadata"]["resourceVersion"]
    return {"path": _path_of(host), "version": version, "host": host}


def _path_of(host: BareMetalHost) -> str:
    return _path(name_of(host))


def _path(name: str) -> str:
    namespace, _, name = name.partition("/")
    return f"{GROUP}/namespaces/{namespace}/baremetalhosts/{name}"
