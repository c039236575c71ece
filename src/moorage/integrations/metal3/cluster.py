"""The identity that tells the hosts of one cluster from others that share its pools.

People could give one name to two clusters by mistake; two governors would then release each other's
units. The UID of the namespace `kube-system` is made once for each cluster, and never changes:
OpenTelemetry's `k8s.cluster.uid` is the same.
"""

from moorage.integrations.kubernetes.api import KubernetesApi, KubernetesError
from moorage.integrations.provisioning.known_hosts import BEFORE_PART, named

PATH = "/api/v1/namespaces/kube-system"


async def installation_of_cluster(
    api: KubernetesApi, namespace: str | None = None, name: str | None = None
) -> str:
    """Return whose the leases of a governor are, for their label. Raises KubernetesError.

    Args:
        api: of the cluster.
        namespace: the only one that is governed; governors of two namespaces do not see each
            other's hosts.
        name: of the cluster, for people.
    """
    found = await api.get(PATH)
    if found is None:
        raise KubernetesError(f"there is no {PATH}, whose UID tells clusters apart")
    uid = str(found["metadata"]["uid"])
    return named(name, uid if namespace is None else f"{uid}{BEFORE_PART}{namespace}")
