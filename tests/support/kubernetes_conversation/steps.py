"""What a conversation consists of."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

JSON = "application/json"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

SPACE = "talk"
HOSTS = f"/apis/metal3.io/v1alpha1/namespaces/{SPACE}/baremetalhosts"
ALL_HOSTS = "/apis/metal3.io/v1alpha1/baremetalhosts"
GOVERNOR = "system:serviceaccount:talk:governor"


@dataclass(frozen=True)
class Of:
    """What an earlier step was answered: its body, or a member of it; `change` is merged into it.

    `way` is the path of the member, with points.
    """

    step: str
    way: str = ""
    change: Any = None


@dataclass(frozen=True)
class Ask:
    """A request; values of `body` and `query` may be `Of`. `user`: in whose name it is sent.

    `until`: it is sent again until it is answered with this status, because the server needs a
    moment. `fields`: who manages which field is compared, too.
    """

    name: str
    method: str
    path: str
    body: Any = None
    kind: str = JSON
    query: Mapping[str, Any] = field(default_factory=dict)
    user: str = ""
    accept: str = JSON
    until: int = 0
    fields: bool = False


@dataclass(frozen=True)
class Watch:
    """A watch, and what is asked once it is open; it is read until its end."""

    name: str
    path: str
    query: Mapping[str, Any]
    during: tuple[Ask, ...] = ()
    accept: str = JSON


Step = Ask | Watch


def host(name: str, *, spec: Any = None, **metadata: Any) -> dict[str, Any]:
    """Return a small BareMetalHost."""
    return {
        "apiVersion": "metal3.io/v1alpha1",
        "kind": "BareMetalHost",
        "metadata": {"name": name, **metadata},
        "spec": {"online": True} if spec is None else spec,
    }


def get(name: str, path: str, **query: Any) -> Ask:
    """Read."""
    return Ask(name, "GET", path, query=query)


def create(name: str, body: Any, path: str = HOSTS, **query: Any) -> Ask:
    """Create."""
    return Ask(name, "POST", path, body, query=query)


def put(name: str, path: str, body: Any, **query: Any) -> Ask:
    """Replace."""
    return Ask(name, "PUT", path, body, query=query)


def merge(name: str, path: str, body: Any, **query: Any) -> Ask:
    """Send a merge patch."""
    return Ask(name, "PATCH", path, body, MERGE, query)


def json_patch(name: str, path: str, body: Any, **query: Any) -> Ask:
    """Send a JSON patch."""
    return Ask(name, "PATCH", path, body, JSON_PATCH, query)


def apply(name: str, path: str, body: Any, manager: str = "one", **query: Any) -> Ask:
    """Apply; who manages which field is compared."""
    wanted = {"fieldManager": manager, **query} if manager else query
    return Ask(name, "PATCH", path, body, APPLY, wanted, fields=True)


def delete(name: str, path: str, body: Any = None, **query: Any) -> Ask:
    """Delete."""
    return Ask(name, "DELETE", path, body, query=query)
