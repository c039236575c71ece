"""Which resources there are, and what is special about each."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.support.kubernetes_double.host_schema import COLUMNS, HOST, Schema

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True)
class Kind:
    """A resource. `generation`: changes outside of metadata and status are counted.

    `status`: it has the subresource. `custom`: it is a custom resource, with a `schema` (empty:
    everything is allowed) and the columns of tables of it.
    """

    group: str
    version: str
    plural: str
    kind: str
    singular: str
    short: tuple[str, ...] = ()
    namespaced: bool = True
    status: bool = False
    generation: bool = False
    custom: bool = False
    schema: Schema = field(default_factory=dict, compare=False)
    columns: tuple[tuple[str, str, str, int], ...] = field(default=(), compare=False)

    @property
    def api_version(self) -> str:
        """Group and version, as in `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version


def _core(plural: str, kind: str, *short: str, **more: Any) -> Kind:
    return Kind("", "v1", plural, kind, kind.lower(), short, **more)


def _global(group: str, version: str, plural: str, kind: str, *short: str, **more: Any) -> Kind:
    return Kind(group, version, plural, kind, kind.lower(), short, False, generation=True, **more)


ADMISSION = "admissionregistration.k8s.io"
METAL3 = "metal3.io"
RBAC = "rbac.authorization.k8s.io"

HOSTS = Kind(
    *(METAL3, "v1alpha1", "baremetalhosts", "BareMetalHost", "baremetalhost", ("bmh", "bmhost")),
    status=True,
    generation=True,
    custom=True,
    schema=HOST,
    columns=COLUMNS,
)
CLUSTERS = Kind(
    *("cluster.x-k8s.io", "v1beta2", "clusters", "Cluster", "cluster", ("cl",)),
    status=True,
    generation=True,
    custom=True,
)
EVENTS = Kind("events.k8s.io", "v1", "events", "Event", "event", ("ev",))
CRDS = _global(
    *("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition"),
    *("crd", "crds"),
    status=True,
)
WEBHOOKS = _global(ADMISSION, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration")
POLICIES = _global(ADMISSION, "v1", "mutatingadmissionpolicies", "MutatingAdmissionPolicy")
BINDINGS = _global(
    ADMISSION, "v1", "mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding"
)

NAMESPACES = _core("namespaces", "Namespace", "ns", namespaced=False, status=True)
CORE_EVENTS = _core("events", "Event", "ev")

KINDS = (
    NAMESPACES,
    CORE_EVENTS,
    _core("secrets", "Secret"),
    _core("configmaps", "ConfigMap", "cm"),
    _core("serviceaccounts", "ServiceAccount", "sa"),
    EVENTS,
    Kind("coordination.k8s.io", "v1", "leases", "Lease", "lease"),
    CRDS,
    WEBHOOKS,
    POLICIES,
    BINDINGS,
    Kind(RBAC, "v1", "roles", "Role", "role"),
    Kind(RBAC, "v1", "rolebindings", "RoleBinding", "rolebinding"),
    Kind(RBAC, "v1", "clusterroles", "ClusterRole", "clusterrole", (), False),
    Kind(RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", "clusterrolebinding", (), False),
    Kind("apps", "v1", "deployments", "Deployment", "deployment", ("deploy",)),
    HOSTS,
    CLUSTERS,
)


def find(group: str, version: str, plural: str) -> Kind | None:
    """Return the resource of a path; None: there is none."""
    for kind in KINDS:
        if (kind.group, kind.version, kind.plural) == (group, version, plural):
            return kind
    return None


def groups() -> Iterator[tuple[str, list[str]]]:
    """Yield each named group with its versions."""
    for group in dict.fromkeys(kind.group for kind in KINDS if kind.group):
        yield group, [*dict.fromkeys(kind.version for kind in KINDS if kind.group == group)]


def definition(kind: Kind) -> dict[str, Any]:
    """Return the CustomResourceDefinition of a custom resource."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    columns = [
        {"name": name, "type": type_, "jsonPath": place, "priority": priority}
        for name, type_, place, priority in kind.columns
    ]
    version = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": kind.schema or anything},
        "subresources": {"status": {}},
        "additionalPrinterColumns": columns,
    }
    names = {
        "plural": kind.plural,
        "singular": kind.singular,
        "kind": kind.kind,
        "listKind": f"{kind.kind}List",
        "shortNames": [*kind.short],
    }
    return {
        "apiVersion": CRDS.api_version,
        "kind": CRDS.kind,
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "names": names,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [version],
        },
        "status": {
            "acceptedNames": names,
            "storedVersions": [kind.version],
            "conditions": [
                {"type": name, "status": "True", "reason": "NoConflicts"}
                for name in ("NamesAccepted", "Established")
            ],
        },
    }
