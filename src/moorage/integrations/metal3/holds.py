"""Which hosts are held: they keep their place in line, and are not started whatever is free.

`clusterctl move` pauses the Cluster first. Cluster API's provider then pauses its hosts, and writes
their status into an annotation, but not of a host that has a pause already, such as ours
(cluster-api-provider-metal3 2f6d76b, `SetPauseAnnotation`). If such a host were started meanwhile,
it would be inspected in one cluster while it moves to the other. So no host of a Cluster with
`spec.paused` is started, and none with the annotation `moorage.dev/hold`, which people set; nor one
of a namespace that has it, which also holds those that are created there later.
"""

import logging
from collections.abc import Iterable, Mapping
from functools import partial
from http import HTTPStatus

from moorage.integrations.bounded import run_bounded
from moorage.integrations.clock import monotonic
from moorage.integrations.kubernetes.api import KubernetesApi, KubernetesError, Object
from moorage.integrations.metal3.hosts import OWN, BareMetalHost, annotations_of, pause_of

HOLD = "moorage.dev/hold"
"""The annotation that holds a host; its value says why, for people."""

CLUSTER = "cluster.x-k8s.io/cluster-name"
"""The label of a host that says which Cluster of its namespace it is of."""

PATHS = ("/apis/cluster.x-k8s.io/v1beta2", "/apis/cluster.x-k8s.io/v1beta1")
"""The versions of Clusters, the newest first; both have `spec.paused`."""

ABSENT = (HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN)
"""Answers of a cluster without Cluster API, or that does not let us read it."""

AGAIN_SECONDS = 60.0
"""How long Clusters are not read again that cannot be read."""

NAMESPACE_SECONDS = 5.0
READS_MAX = 8
"""For how long passes believe that a namespace is held, and how many are read at once."""

WHY_LENGTH_MAX = 200

log = logging.getLogger("moorage.metal3")


class Holds:
    """Holds back the hosts of one cluster."""

    def __init__(self, api: KubernetesApi) -> None:
        """Begin with no Clusters that are known."""
        self._api = api
        self._paused: set[tuple[str, str]] = set()
        """Namespaces and names of Clusters that were paused when they were read last."""
        self._unknown: str | None = None
        """Why Clusters cannot be read yet, so that any may be paused; None: they were read."""
        self._unreadable_until = 0.0
        self._told = False
        self._held: dict[str, tuple[float, str]] = {}
        """When namespaces were read that are held, and why. Others are read before a start only: a
        pass must not wait for them."""
        self._namespaces_told = False

    async def look(self, hosts: Iterable[BareMetalHost]) -> None:
        """Read what holds the hosts that wait. Raises KubernetesError.

        While Clusters cannot be read, only hosts of Clusters wait: the server may deny a right that
        it does not know yet, or the webhook that converts Clusters to another version is away.
        """
        waiting = [host for host in hosts if pause_of(host) == OWN]
        names, now = {_namespace_of(host) for host in waiting}, monotonic()
        held = {name: seen for name, seen in self._held.items() if name in names}
        self._held = held
        old = [name for name, (read, _) in held.items() if now - read >= NAMESPACE_SECONDS]
        await run_bounded(READS_MAX, [partial(self._read_if_known, name) for name in old])
        await self._look_at_clusters(waiting)

    async def _look_at_clusters(self, waiting: Iterable[BareMetalHost]) -> None:
        if not any(_cluster_of(host)[1] for host in waiting):
            return
        try:
            clusters = await self._clusters()
        except KubernetesError as error:
            if error.is_of_server and not error.is_denied_yet:
                raise
            self._unknown = str(error)
            return
        self._unknown = None
        self._paused = {
            (str(one["metadata"].get("namespace")), str(one["metadata"]["name"]))
            for one in clusters
            if _is_paused(one)
        }

    def why(self, host: BareMetalHost) -> str | None:
        """Return why a host is not started now; None: nothing holds it."""
        if (text := annotations_of(host).get(HOLD)) is not None:
            return f"it is held: {_reason(text)}"
        namespace = _namespace_of(host)
        if namespace in self._held:
            return f"its namespace {namespace} is held: {_reason(self._held[namespace][1])}"
        cluster = _cluster_of(host)
        if cluster in self._paused:
            return f"its cluster {cluster[1]} is paused"
        if cluster[1] and self._unknown is not None:
            return f"its cluster {cluster[1]} cannot be read yet: {self._unknown}"
        return None

    async def why_now(self, host: BareMetalHost) -> str | None:
        """Return the same; its namespace and Cluster are read again. Raises KubernetesError."""
        await self._read_namespace(_namespace_of(host))
        await self._look_at_clusters([host])
        return self.why(host)

    async def _read_if_known(self, name: str) -> None:
        """Read a namespace that is held; it stays so while the server may not know our right."""
        try:
            await self._read_namespace(name)
        except KubernetesError as error:
            if not error.is_denied_yet:
                raise

    async def _read_namespace(self, name: str) -> None:
        try:
            found = await self._api.get(namespace_path(name))
        except KubernetesError as error:
            if error.status != HTTPStatus.FORBIDDEN or error.may_pass:
                raise
            if not self._namespaces_told:
                log.warning(
                    "hosts of held namespaces are started: the governor's role needs apiGroups"
                    ' [""], resources ["namespaces"], verbs ["get"]: %s',
                    error,
                )
                self._namespaces_told = True
            found = None
        why = None if found is None else held_by(found)
        self._held.pop(name, None)
        if why is not None:
            self._held[name] = monotonic(), why

    async def _clusters(self) -> list[Object]:
        if monotonic() < self._unreadable_until:
            return []
        for path in PATHS:
            try:
                return await self._api.all(f"{path}/clusters")
            except KubernetesError as error:
                if error.status not in ABSENT or error.may_pass:
                    raise
                if error.status == HTTPStatus.FORBIDDEN and not self._told:
                    log.warning(
                        "hosts of paused Clusters are started: the governor's role needs apiGroups"
                        ' ["cluster.x-k8s.io"], resources ["clusters"], verbs ["list"]: %s',
                        error,
                    )
                    self._told = True
        self._unreadable_until = monotonic() + AGAIN_SECONDS
        return []


def namespace_path(name: str) -> str:
    """Return the path of a namespace."""
    return f"/api/v1/namespaces/{name}"


def held_by(found: Object) -> str | None:
    """Return why an object is held by its own annotation; None: it is not."""
    annotations = found["metadata"].get("annotations")
    text = annotations.get(HOLD) if isinstance(annotations, Mapping) else None
    return None if text is None else str(text)


def _reason(text: object) -> str:
    return str(text)[:WHY_LENGTH_MAX] or "no reason is given"


def _namespace_of(host: BareMetalHost) -> str:
    return str(host["metadata"].get("namespace", "default"))


def _cluster_of(host: BareMetalHost) -> tuple[str, str]:
    """Return the namespace and the name of the Cluster of a host; empty names: it is of none."""
    metadata = host["metadata"]
    labels = metadata.get("labels")
    name = labels.get(CLUSTER) if isinstance(labels, dict) else None
    return (_namespace_of(host), str(name)) if name else ("", "")


def _is_paused(cluster: Object) -> bool:
    spec = cluster.get("spec")
    return isinstance(spec, dict) and bool(spec.get("paused"))
