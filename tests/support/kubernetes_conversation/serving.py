"""Steps: what is served, to whom, and events."""

from dataclasses import replace
from typing import Any

from tests.support.kubernetes_conversation.steps import (
    ALL_HOSTS,
    GOVERNOR,
    HOSTS,
    SPACE,
    Ask,
    Step,
    create,
    delete,
    get,
    host,
    merge,
    put,
)

RBAC = "/apis/rbac.authorization.k8s.io/v1"
API = "rbac.authorization.k8s.io"
SUBJECT = {"kind": "ServiceAccount", "name": "governor", "namespace": SPACE}
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{SPACE}/leases"
ROLES: tuple[dict[str, Any], ...] = (
    {
        "apiVersion": f"{API}/v1",
        "kind": "Role",
        "metadata": {"name": "governs", "namespace": SPACE},
        "rules": [
            {
                "apiGroups": ["metal3.io"],
                "resources": ["baremetalhosts"],
                "verbs": ["list", "patch"],
            },
            {
                "apiGroups": ["metal3.io"],
                "resources": ["baremetalhosts"],
                "resourceNames": ["mine"],
                "verbs": ["get", "create", "watch"],
            },
        ],
    },
    {
        "apiVersion": f"{API}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "governs", "namespace": SPACE},
        "roleRef": {"apiGroup": API, "kind": "Role", "name": "governs"},
        "subjects": [SUBJECT],
    },
)
PLACES = {"Role": "roles", "RoleBinding": "rolebindings"}
EVENTS = f"/api/v1/namespaces/{SPACE}/events"
EVENT: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "one.0123456789abcdef", "namespace": SPACE},
    "involvedObject": {
        "apiVersion": "metal3.io/v1alpha1",
        "kind": "BareMetalHost",
        "namespace": SPACE,
        "name": "one",
        "uid": "00000000-0000-4000-8000-000000000001",
    },
    "type": "Normal",
    "reason": "Waiting",
    "message": "Place 1 in line of deploy",
    "source": {"component": "moorage"},
    "reportingComponent": "moorage.dev/governor",
    "firstTimestamp": "2026-01-01T00:00:00Z",
    "lastTimestamp": "2026-01-01T00:00:00Z",
    "count": 1,
}

OTHER_EVENTS = f"/apis/events.k8s.io/v1/namespaces/{SPACE}/events"
OTHER_EVENT: dict[str, Any] = {
    "apiVersion": "events.k8s.io/v1",
    "kind": "Event",
    "metadata": {"name": "other", "namespace": SPACE},
    "regarding": EVENT["involvedObject"],
    "eventTime": "2026-01-01T00:00:00.000000Z",
    "reportingController": "moorage.dev/governor",
    "reportingInstance": "one",
    "action": "Wait",
    "type": "Normal",
    "reason": "Waiting",
    "note": "Place 1 in line of deploy",
}

DISCOVERED: tuple[Step, ...] = (
    get("the group", "/apis/metal3.io"),
    get("its resources", "/apis/metal3.io/v1alpha1"),
    get("an unknown group", "/apis/nothing.example.com"),
    get("an unknown version", "/apis/metal3.io/v9"),
    get("a resource of an unknown version", HOSTS.replace("v1alpha1", "v9")),
    get("an unknown resource", HOSTS.replace("baremetalhosts", "things")),
    get("an unknown resource of the core", "/api/v1/things"),
    get("an unknown part", f"{HOSTS}/one/scale"),
    get("an unknown part of the core", f"{EVENTS}/one/scale"),
    get("a path that is none", "/nothing"),
    put("a collection is replaced", HOSTS, host("one")),
    create("a part is created", host("one"), f"{HOSTS}/one/status"),
    create("a host is created by its name", host("by-name"), f"{HOSTS}/by-name", dryRun="All"),
    delete("a part is deleted", f"{HOSTS}/one/status"),
)

ALLOWED: tuple[Step, ...] = (
    *(
        create(role["kind"], role, f"{RBAC}/namespaces/{SPACE}/{PLACES[role['kind']]}")
        for role in ROLES
    ),
    *(
        replace(step, user=GOVERNOR)
        for step in (
            Ask(
                "may list", "GET", HOSTS, until=200, query={"limit": "1", "labelSelector": "none=1"}
            ),
            get("may not read", f"{HOSTS}/one"),
            get("may read its own", f"{HOSTS}/mine"),
            get("may not read a status", f"{HOSTS}/mine/status"),
            get("may not list all", ALL_HOSTS),
            get("may not list elsewhere", HOSTS.replace(SPACE, "default")),
            get("may not watch", HOSTS, watch="1"),
            get("may not watch one", HOSTS, watch="1", fieldSelector="metadata.name=one"),
            create("may not create", host("a")),
            put("may not replace", f"{HOSTS}/one", host("one")),
            merge("may patch nothing", f"{HOSTS}/nothing", {}),
            merge("may not patch a status", f"{HOSTS}/one/status", {}),
            delete("may not delete", f"{HOSTS}/one"),
            delete("may not delete all", HOSTS),
            get("may not read a namespace", f"/api/v1/namespaces/{SPACE}"),
            get("may not list secrets", f"/api/v1/namespaces/{SPACE}/secrets"),
            get("may not read a lease", f"{LEASES}/leader"),
            get("may not list what is unknown", HOSTS.replace("baremetalhosts", "things")),
            create("may not post an event", EVENT, EVENTS),
        )
    ),
    replace(get("a stranger may not list", HOSTS), user="stranger"),
)

POSTED: tuple[Step, ...] = (
    create("an event", EVENT, EVENTS, fieldManager="moorage"),
    create("the same event", EVENT, EVENTS, fieldManager="moorage"),
    get("events about a host", EVENTS, fieldSelector="involvedObject.name=one,reason=Waiting"),
    get("events about another", EVENTS, fieldSelector="involvedObject.name=two"),
    create(
        "an event about another namespace",
        {
            **EVENT,
            "metadata": {"name": "x"},
            "involvedObject": {"kind": "Node", "name": "n", "namespace": "other"},
        },
        EVENTS,
    ),
    delete("an event is deleted", f"{EVENTS}/{EVENT['metadata']['name']}"),
    create("an event of the other API", OTHER_EVENT, OTHER_EVENTS),
    get("an event seen by the other API", f"{EVENTS}/other"),
)
