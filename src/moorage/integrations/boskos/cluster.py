"""Objects of Boskos in a cluster."""

from dataclasses import dataclass

from moorage.integrations.boskos.objects import API_VERSION
from moorage.integrations.kubernetes.api import KubernetesApi, Object

PLURALS = ("resources", "dynamicresourcelifecycles")


@dataclass(frozen=True, slots=True)
class Objects:
    """All objects of Boskos, the namespaces that have some, and their versions."""

    objects: list[Object]
    namespaces: list[str]
    versions: dict[str, str]
    """By UID: of a running Boskos some change."""


async def objects_of(api: KubernetesApi, namespace: str | None) -> Objects:
    """Read all objects of Boskos in one namespace, or in all. Raises KubernetesError."""
    place = "" if namespace is None else f"/namespaces/{namespace}"
    found = [
        one for plural in PLURALS for one in await api.all(f"/apis/{API_VERSION}{place}/{plural}")
    ]
    metadata = [one["metadata"] for one in found]
    return Objects(
        found,
        sorted({str(one.get("namespace", "")) for one in metadata}),
        {str(one.get("uid")): str(one.get("resourceVersion")) for one in metadata},
    )
