"""Which hosts are held: they keep their place in line, and are not started whatever is free.

`clusterctl move` pauses the Cluster first. Cluster API's provider then pauses its hosts, and writes
their status into an annotation, but not of a host that has a pause already, such as ours
(cluster-api-provider-metal3 2f6d76b, `SetPauseAnnotation`). If such a host were started meanwhile,
it would be inspected in one cluster while it moves to the other. So no host of a Cluster with
`spec.paused` is started, and none with the annotation `moorage.dev/hold`, which people set.
"""

import logging
from collections.abc import Iterable
from http import HTTPStatus

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

WHY_LENGTH_MAX = 200

log = logging.getLogger("moorage.metal3")


class Holds:
    """What holds the hosts of one cluster."""

    def __init__(self, api: KubernetesApi) -> None:
        """Begin with no Clusters that are known."""
        self._api = api
        self._paused: set[tuple[str, str]] = set()
        """Namespaces and names of Clusters that were paused when they were read last."""
        self._unreadable_until = 0.0
        self._told = False

    async def look(self, hosts: Iterable[BareMetalHost]) -> None:
        """Read which Clusters are paused, if a host of one waits. Raises KubernetesError."""
        if any(pause_of(host) == OWN and _cluster_of(host)[1] for host in hosts):
            self._paused = {
                (str(one["metadata"].get("namespace")), str(one["metadata"]["name"]))
                for one in await self._clusters()
                if _is_paused(one)
            }

    def why(self, host: BareMetalHost) -> str | None:
        """Return why a host is not started now; None: nothing holds it."""
        if (text := annotations_of(host).get(HOLD)) is not None:
            return f"it is held: {str(text)[:WHY_LENGTH_MAX] or 'no reason is given'}"
        cluster = _cluster_of(host)
        if cluster in self._paused:
            return f"its cluster {cluster[1]} is paused"
        return None

    async def why_now(self, host: BareMetalHost) -> str | None:
        """Return the same, with its Cluster read again. Raises KubernetesError."""
        await self.look([host])
        return self.why(host)

    async def _clusters(self) -> list[Object]:
        if monotonic() < self._unreadable_until:
            return []
        for path in PATHS:
            try:
                return await self._api.all(f"{path}/clusters")
            except KubernetesError as error:
                if error.status not in ABSENT:
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


def _cluster_of(host: BareMetalHost) -> tuple[str, str]:
    """Return the namespace and the name of the Cluster of a host; empty names: it is of none."""
    metadata = host["metadata"]
    labels = metadata.get("labels")
    name = labels.get(CLUSTER) if isinstance(labels, dict) else None
    return (str(metadata.get("namespace", "default")), str(name)) if name else ("", "")


def _is_paused(cluster: Object) -> bool:
    spec = cluster.get("spec")
    return isinstance(spec, dict) and bool(spec.get("paused"))
