"""The limit that metal3's own operator (BMO) has, beside those of pools.

It counts the busy nodes before it inspects, provisions or deprovisions a host, and delays hosts
above `PROVISIONING_LIMIT`, except those with virtual media. Source: baremetal-operator 02aa505,
`pkg/provisioner/ironic/factory.go` and `HasCapacity` in `ironic.go`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from moorage.integrations.kubernetes.api import KubernetesApi, KubernetesError, Object
from moorage.integrations.metal3.status import mapping_of

LIMIT = "PROVISIONING_LIMIT"
DEFAULT = "20"
DEPLOYMENTS = "/apis/apps/v1/deployments"
OPERATOR = "baremetal-operator"
"""The name of the operator's images, also of images that others build."""


@dataclass(frozen=True)
class OperatorLimit:
    """The limit of one operator: of a Deployment, by `namespace/name`."""

    deployment: str
    limit: str
    """As it is set; it may be no number, which the operator refuses."""
    is_set: bool


async def operator_limits(api: KubernetesApi) -> list[OperatorLimit]:
    """Return the limits of the operators that a cluster has. Raises KubernetesError."""
    found = []
    for deployment in await api.all(DEPLOYMENTS):
        metadata = deployment["metadata"]
        namespace = str(metadata.get("namespace", "default"))
        for container in _operators(deployment):
            value = await _value(api, namespace, container)
            name = f"{namespace}/{metadata['name']}"
            found.append(OperatorLimit(name, value or DEFAULT, value is not None))
    return found


def _operators(deployment: Object) -> Iterator[Mapping[str, Any]]:
    """Yield the containers of a Deployment that run the operator."""
    spec = deployment.get("spec")
    pod = mapping_of(mapping_of(mapping_of(spec).get("template")).get("spec"))
    for container in pod.get("containers") or ():
        image = str(mapping_of(container).get("image") or "")
        if OPERATOR in image or any(one.get("name") == LIMIT for one in _env(container)):
            yield container


async def _value(api: KubernetesApi, namespace: str, container: Mapping[str, Any]) -> str | None:
    """Return what a container has in its environment; None: nothing that can be read."""
    for one in _env(container):
        if one.get("name") != LIMIT:
            continue
        if one.get("value"):
            return str(one["value"])
        source = mapping_of(mapping_of(one.get("valueFrom")).get("configMapKeyRef"))
        return await _of_map(api, namespace, source.get("name"), str(source.get("key")))
    found = None
    for one in container.get("envFrom") or ():
        source = mapping_of(mapping_of(one).get("configMapRef"))
        value = await _of_map(api, namespace, source.get("name"), LIMIT)
        found = value or found  # the last one wins
    return found


async def _of_map(api: KubernetesApi, namespace: str, name: Any, key: str) -> str | None:
    if not isinstance(name, str) or not name:
        return None
    try:
        found = await api.get(f"/api/v1/namespaces/{namespace}/configmaps/{name}")
    except KubernetesError:
        return None  # not everybody may read it
    value = mapping_of((found or {}).get("data")).get(key)
    return str(value) if value else None


def _env(container: Any) -> list[Mapping[str, Any]]:
    return [mapping_of(one) for one in mapping_of(container).get("env") or ()]
