"""The hosts of a cluster as of a moment ago, without listing them for each pass."""

from collections.abc import Mapping

from moorage.integrations.kubernetes.api import KubernetesApi
from moorage.integrations.kubernetes.mirror import LIST_SECONDS, Mirror
from moorage.integrations.metal3.hosts import BareMetalHost, pause_of, start_of, work_of
from moorage.integrations.metal3.status import status_of

HARDWARE = ("cpu", "systemVendor")
"""The fields of `status.hardware` that rules read. Interfaces and disks are most of a host: with
them, 15,000 hosts would need more memory than the pod of the governor may have."""

GROUP = "/apis/metal3.io/v1alpha1"


class HostMirror(Mirror):
    """The hosts of all namespaces, or of one.

    Nothing may be released because of it alone: read the host again after its lease was noted.
    """

    def __init__(
        self, api: KubernetesApi, namespace: str | None = None, seconds: float = LIST_SECONDS
    ) -> None:
        """Prepare to follow; `seconds`: how often all hosts are listed."""
        super().__init__(api, list_path(namespace), _matter, seconds, without_details)

    def hosts(self) -> list[BareMetalHost]:
        """Return the hosts. Raises StaleError: they are not known, or not any more."""
        return self.objects()


def _matter(host: BareMetalHost) -> object:
    """Return what of a host decides what a pass does with it."""
    known = host["metadata"].get("uid"), pause_of(host), start_of(host), work_of(host)
    return *known, status_of(host).get("errorType"), status_of(host).get("errorCount")


def without_details(host: BareMetalHost) -> BareMetalHost:
    """Return a host without most of what its inspection has found: nothing of it decides."""
    status = host.get("status")
    hardware = status.get("hardware") if isinstance(status, Mapping) else None
    if not isinstance(status, Mapping) or not isinstance(hardware, Mapping):
        return host
    known = {name: hardware[name] for name in HARDWARE if name in hardware}
    return {**host, "status": {**status, "hardware": known}}


def list_path(namespace: str | None) -> str:
    """Return the path of the list of all hosts, or of those in a namespace."""
    if namespace is None:
        return f"{GROUP}/baremetalhosts"
    return f"{GROUP}/namespaces/{namespace}/baremetalhosts"
