"""Reads BareMetalHosts, changes our own annotations of them, and creates events about them."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from moorage.integrations.kubernetes.api import KubernetesApi, KubernetesError
from moorage.integrations.metal3.hosts import (
    PAUSED,
    WAITING,
    BareMetalHost,
    is_same_but_for_note,
    name_of,
    occupies,
)
from moorage.integrations.provisioning.starts import Start, StartResult
from moorage.integrations.provisioning.unit_release import outcome_of

GROUP = "/apis/metal3.io/v1alpha1"


class HostRequests:
    """Requests about the hosts of one cluster. Every call raises KubernetesError."""

    def __init__(self, api: KubernetesApi, namespace: str | None = None) -> None:
        """Prepare to ask; `namespace` None: hosts of all namespaces."""
        self._api = api
        self._list = f"{GROUP}/baremetalhosts"
        if namespace is not None:
            self._list = f"{GROUP}/namespaces/{namespace}/baremetalhosts"

    async def all(self) -> list[BareMetalHost]:
        """Return all hosts, in one state of the cluster that is not older than the request."""
        return await self._api.all(self._list)

    async def again(self, host: BareMetalHost) -> BareMetalHost | None:
        """Return a host as it is now; None: it is gone, also if another one has its name."""
        return await self._same(_path_of(host), str(host["metadata"]["uid"]))

    async def read(self, start: Start) -> BareMetalHost | None:
        """Return the host of a start as it is now."""
        return await self._same(str(start.body["path"]), start.host.uuid)

    async def _same(self, path: str, uid: str) -> BareMetalHost | None:
        host = await self._api.get(path)
        return host if host is not None and host["metadata"].get("uid") == uid else None

    def works(self, host: BareMetalHost) -> bool:
        """Return whether it needs its unit."""
        return occupies(host)

    def is_locked(self, host: BareMetalHost) -> bool:
        """Return False: nothing locks a host."""
        return False

    async def send(self, start: Start) -> StartResult:
        """Remove our pause, unless the host was changed since it was read."""
        try:
            await self._unpause_despite_note(start)
        except KubernetesError as error:
            soon = error.status == HTTPStatus.CONFLICT
            return StartResult(outcome_of(error.status), str(error), soon=soon)
        return StartResult(outcome_of(HTTPStatus.OK))

    async def unpause(self, host: BareMetalHost) -> bool:
        """Remove our pause from a host; False: it is no longer as it was read, or gone."""
        try:
            await self._unpause(_path_of(host), str(host["metadata"]["resourceVersion"]))
        except KubernetesError as error:
            if error.status not in (HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND):
                raise
            return False
        return True

    async def _unpause_despite_note(self, start: Start) -> None:
        """Remove our pause from the host of a start, also if a note was written meanwhile."""
        path, before = str(start.body["path"]), start.body["host"]
        try:
            await self._unpause(path, str(start.body["version"]))
        except KubernetesError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise
            now = await self._unless_unknown(start)
            if now is None or not is_same_but_for_note(before, now):
                raise
            await self._unpause(path, now["metadata"]["resourceVersion"])

    async def _unless_unknown(self, start: Start) -> BareMetalHost | None:
        """Return the host of a start as it is now; None: it is gone, or there is no answer."""
        try:
            return await self.read(start)
        except KubernetesError:
            return None

    async def _unpause(self, path: str, version: str) -> None:
        """Remove our pause, and with it what the host says of why it waits."""
        metadata = {"annotations": {PAUSED: None, WAITING: None}, "resourceVersion": version}
        await self._api.merge(path, {"metadata": metadata})

    async def note(self, host: BareMetalHost, text: str | None) -> bool:
        """Let a host say why it waits, or nothing (None); False: it is not as it was read."""
        version = host["metadata"]["resourceVersion"]
        metadata = {"annotations": {WAITING: text}, "resourceVersion": version}
        try:
            await self._api.merge(_path_of(host), {"metadata": metadata})
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
    namespace, _, name = name_of(host).partition("/")
    return f"{GROUP}/namespaces/{namespace}/baremetalhosts/{name}"
