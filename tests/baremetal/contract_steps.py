"""The steps of the contract between Ironic and its double: which requests are sent, in which order.

A `rebuild` follows a change of the image, because otherwise Ironic 39.0 answers 500: "cannot access
local variable 'auto_lessee'". The double does not have this defect.

Standard library only: it runs in the environment of the clients, too.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from moorage.integrations.ironic.provision_request import JSON
from tests.integrations.ironic.spellings import ACCEPTED

VERSION = "X-OpenStack-Ironic-API-Version"
RECENT = "1.95"
BEFORE_SUFFIX = "1.90"
"""The last version in which a path may end with `.json`."""

VERBS = (
    *("active", "deploy", "rebuild", "deleted", "undeploy", "manage", "provide", "inspect"),
    *("abort", "clean", "adopt", "rescue", "unrescue", "unhold", "service"),
)
STATES_OF = "?fields=provision_state,target_provision_state,reservation,last_error,power_state"
RESET: dict[str, Any] = {"clean_steps": [{"interface": "bios", "step": "factory_reset"}]}
PASSWORD: dict[str, Any] = {"rescue_password": "secret"}
SERVICE: dict[str, Any] = {
    "service_steps": [{"interface": "vendor", "step": "trigger_servicewait"}]
}


@dataclass(frozen=True)
class Ask:
    """A request; `body` is sent as it is, `content_type` None: without that header."""

    method: str
    path: str
    body: bytes | None = None
    version: str | None = RECENT
    content_type: str | None = JSON
    service_version: str | None = None
    """The version in the header that all services have in common; it precedes `version`."""

    @property
    def headers(self) -> dict[str, str]:
        """What is sent with it."""
        sent = {
            VERSION: self.version,
            "Content-Type": self.content_type,
            "OpenStack-API-Version": self.service_version,
        }
        return {name: value for name, value in sent.items() if value is not None}

    def __str__(self) -> str:
        body = f" {self.body.decode()}" if self.body else ""
        details = "" if self.version == RECENT else f" [version {self.version}]"
        details += "" if self.content_type == JSON else f" [type {self.content_type}]"
        details += f" [{self.service_version}]" if self.service_version else ""
        return f"{self.method} {self.path}{body}{details}"


@dataclass(frozen=True)
class Settle:
    """Wait until nothing works on a node; then the states are compared that it has entered."""

    node: str


@dataclass(frozen=True)
class Restart:
    """Ironic is killed, and started again."""


Step = Ask | Settle | Restart


def uuid_of(node: str) -> str:
    """Return the UUID with which a node `node-N` is created."""
    return f"00000000-0000-4000-8000-{int(node.removeprefix('node-')):012}"


def send(method: str, path: str, body: Any = None, version: str | None = RECENT) -> Ask:
    """Return a request with a JSON body."""
    return Ask(method, path, None if body is None else json.dumps(body).encode(), version)


def get(path: str, version: str | None = RECENT) -> Ask:
    """Return a request to read."""
    return send("GET", path, None, version)


def create(node: str, **members: Any) -> Ask:
    """Return the request that enrols a node."""
    body = {"name": node, "uuid": uuid_of(node), "driver": "fake-hardware", **members}
    return send("POST", "/v1/nodes", body)


def want(node: str, target: Any, version: str = RECENT, **members: Any) -> Ask:
    """Return a request for a provision state."""
    return send("PUT", f"/v1/nodes/{node}/states/provision", {"target": target, **members}, version)


def patch(node: str, op: str, path: str, *value: Any) -> Ask:
    """Return a request that changes one field."""
    change = {"op": op, "path": path, **({"value": value[0]} if value else {})}
    return send("PATCH", f"/v1/nodes/{node}", [change])


def done(node: str, target: str, **members: Any) -> Iterator[Step]:
    """Ask for a state, and wait until the work has ended."""
    yield want(node, target, **members)
    yield Settle(node)
    yield get(f"/v1/nodes/{node}{STATES_OF}")


def refused(node: str, *accepted: str) -> Iterator[Step]:
    """Ask for everything that the state of the node does not allow."""
    for verb in (*VERBS, "nonsense", ""):
        if verb not in accepted:
            yield want(node, verb)


def _documents() -> Iterator[Step]:
    yield from (get("/"), get("/v1"), get("/v1/"), get("/v1/drivers"), get("/v1/conductors"))
    for version in (None, "1.1", "latest", "1.200", "2.0", "0.9", "nonsense", ""):
        yield get("/v1/nodes", version)
    yield get("/", "1.200")
    yield from (get("/nothing"), get("/v1/nothing"), get("/v1/nodes/nothing"), get("/v2/nodes"))
    yield from (send("POST", "/v1"), send("DELETE", "/v1/nodes"), send("PUT", "/v1/nodes", {}))


def _nodes() -> Iterator[Step]:
    for number in range(1, 5):
        yield create(f"node-{number}", resource_class="gold", properties={"cpus": 8})
    yield create("node-1")
    yield send("POST", "/v1/nodes", {"name": "other"})
    yield send("POST", "/v1/nodes", {"driver": "nothing", "name": "other"})
    yield send("POST", "/v1/nodes", {"driver": "fake-hardware", "name": "not a name"})
    yield send("POST", "/v1/nodes", {"driver": "fake-hardware", "nonsense": 1})
    yield Ask("POST", "/v1/nodes", b"{")
    for name in ("node-1", uuid_of("node-1"), "node-9", uuid_of("node-9"), "not%20a%20name"):
        yield get(f"/v1/nodes/{name}?fields=uuid,name")
    yield from (get("/v1/nodes/node-1"), get("/v1/nodes/node-1", "1.1"))
    yield from (get("/v1/nodes/node-1", "latest"), get("/v1/nodes/node-1/"))
    yield from (get("/v1/nodes/node-1/states"), get("/v1/nodes/node-1/validate"))
    yield get("/v1/nodes/node-1?fields=nonsense")
    yield get("/v1/nodes/node-1?fields=shard", "1.50")
    yield get("/v1/nodes/node-9/states")
    yield get("/v1/nodes/node-9/validate")
    yield get("/v1/nodes/node-1/nonsense")
    yield get("/v1/nodes/node-1.json?fields=name", BEFORE_SUFFIX)
    yield get("/v1/nodes/node-1.json?fields=name")


def _lists() -> Iterator[Step]:
    yield from (get("/v1/nodes"), get("/v1/nodes/?fields=name"))
    for query in (
        "fields=uuid&limit=2",
        f"fields=uuid&limit=2&marker={uuid_of('node-2')}",
        f"fields=uuid&limit=2&marker={uuid_of('node-4')}",
        f"fields=uuid&marker={uuid_of('node-9')}",
        "fields=uuid&marker=node-1",
        "fields=name&limit=1&provision_state=enroll",
        "fields=name&limit=0",
        "fields=name&limit=-1",
        "fields=name&limit=nonsense",
        "fields=name&limit=100000",
        "fields=name&provision_state=enroll",
        "fields=name&provision_state=active",
        "fields=name&provision_state=nonsense",
        "fields=name&maintenance=true",
        "fields=name&resource_class=gold",
        "fields=name&resource_class=silver",
        "fields=name&driver=fake-hardware",
        "fields=name&conductor_group=x",
        "fields=name&owner=alice",
        "fields=nonsense",
        "fields=name&detail=true",
        "detail=true&limit=1",
        "detail=false&limit=1",
        "limit=1",
        "nonsense=1",
        "sort_key=name&sort_dir=desc&fields=name",
        f"sort_key=name&sort_dir=desc&fields=name&limit=2&marker={uuid_of('node-3')}",
        f"sort_key=id&sort_dir=asc&fields=uuid%2Cname&limit=2&marker={uuid_of('node-2')}",
        "sort_key=provision_state&limit=1",
        "sort_key=extra",
        "sort_key=nonsense",
        "sort_dir=nonsense",
    ):
        yield get(f"/v1/nodes?{query}")
    yield get("/v1/nodes/detail?limit=1")
    yield get("/v1/nodes?fields=shard", "1.50")
    yield get("/v1/nodes?limit=1", "1.4")
    for service_version in ("baremetal 1.50", "baremetal latest", "compute 2.1"):
        yield Ask("GET", "/v1/nodes/node-1", version="1.5", service_version=service_version)


def _changes() -> Iterator[Step]:
    yield patch("node-1", "add", "/extra/moorage", {"lease": "x"})
    yield get("/v1/nodes/node-1?fields=extra,owner,shard,conductor_group,traits")
    yield patch("node-1", "replace", "/extra/moorage/lease", "y")
    yield patch("node-1", "test", "/extra/moorage/lease", "z")
    yield patch("node-1", "remove", "/extra/moorage")
    yield patch("node-1", "remove", "/extra/moorage")
    yield patch("node-1", "add", "/instance_info/image_source", "http://image")
    yield patch("node-1", "remove", "/instance_info")
    yield patch("node-1", "add", "/owner", "alice")
    yield patch("node-1", "remove", "/owner")
    yield patch("node-1", "replace", "/provision_state", "active")
    yield patch("node-1", "replace", "/nonsense", "x")
    yield patch("node-1", "nonsense", "/extra/x", "x")
    yield patch("node-1", "replace", "/name", "node-2")
    yield patch("node-1", "replace", "/name", "not a name")
    yield patch("node-1", "replace", "/name", "renamed")
    yield from (get("/v1/nodes/node-1?fields=name"), get("/v1/nodes/renamed?fields=name"))
    yield patch("renamed", "replace", "/name", "node-1")
    yield patch("node-9", "add", "/extra/x", 1)
    yield send("PATCH", "/v1/nodes/node-1", {})
    yield patch("node-1", "replace", "/maintenance", True)
    yield get("/v1/nodes?fields=name&maintenance=true&limit=1")
    yield get("/v1/nodes?fields=name&maintenance=false&owner=&limit=1")
    yield send("DELETE", "/v1/nodes/node-1/maintenance")
    yield send("PUT", "/v1/nodes/node-1/maintenance", {"reason": "broken"})
    yield get("/v1/nodes/node-1?fields=maintenance,maintenance_reason")
    yield send("DELETE", "/v1/nodes/node-1/maintenance")
    yield send("PUT", "/v1/nodes/node-9/maintenance", {})
    yield send("PUT", "/v1/nodes/node-1/states/power", {"target": "power on"})
    yield Settle("node-1")
    yield get(f"/v1/nodes/node-1{STATES_OF}")
    yield send("PUT", "/v1/nodes/node-1/states/power", {"target": "nonsense"})
    yield send("PUT", "/v1/nodes/node-9/states/power", {"target": "power on"})
    yield send("POST", "/v1/heartbeat/node-1", {"callback_url": "http://127.0.0.1:9"})
    yield send("POST", "/v1/heartbeat/node-9", {"callback_url": "http://127.0.0.1:9"})


def _reported() -> Iterator[Step]:
    """What reporters read: a lock is a change, so that new traits are found by the time of it.

    The times of a change are in whole nodes only.
    """
    fields = "uuid,resource_class,maintenance,power_state,provision_state,instance_uuid,traits"
    newest = "/v1/nodes?fields=name,traits&sort_key=updated_at&sort_dir=desc"
    traits = {"traits": ["CUSTOM_B", "HW_CPU_X86_VMX", "CUSTOM_A"]}
    yield get("/v1/nodes?fields=name&sort_key=updated_at&sort_dir=asc&limit=1")
    yield get("/v1/nodes?fields=name&sort_key=created_at&sort_dir=desc&limit=1")
    yield Settle("node-1")
    yield send("PUT", "/v1/nodes/node-2/traits", traits)
    yield get(f"{newest}&limit=1")
    yield get("/v1/nodes/node-2/traits")
    yield Settle("node-2")
    yield send("PUT", "/v1/nodes/node-1/traits", {"traits": ["CUSTOM_A"]})
    yield get(f"{newest}&limit=2")
    yield send("DELETE", "/v1/nodes/node-1/traits")
    yield send("PUT", "/v1/nodes/node-9/traits", traits)
    yield get(f"/v1/nodes?fields={fields}&limit=2")
    yield get(f"/v1/nodes/node-1?fields={fields}")
    yield get(f"/v1/nodes?fields={fields},created_at&limit=2")
    yield get(f"/v1/nodes/node-1?fields={fields},updated_at")
    yield get("/v1/nodes/detail?sort_key=updated_at&sort_dir=desc&limit=1")
    yield get("/v1/conductors?fields=hostname,alive&limit=1000")
    yield get("/v1/conductors", "1.48")


def _life() -> Iterator[Step]:
    yield from refused("node-1", "manage")
    yield want("node-1", "manage", "1.3")
    yield want(uuid_of("node-1"), "manage", "1.3")
    yield want("node-1", "deploy", "1.72")
    yield want("node-9", "manage")
    yield want("node-1", 7)
    yield send("PUT", "/v1/nodes/node-1/states/provision", {})
    yield send("PUT", "/v1/nodes/node-1/states/provision", {"target": "manage", "nonsense": 1})
    yield Ask("PUT", "/v1/nodes/node-1/states/provision", b"{")
    yield from done("node-1", "manage")
    yield from refused("node-1", "provide", "inspect", "adopt")
    yield want("node-1", "clean", **SERVICE)
    yield want("node-1", "clean", clean_steps=[])
    yield want("node-1", "rescue", **PASSWORD)
    yield from done("node-1", "inspect")
    yield from done("node-1", "clean", **RESET)
    yield from done("node-1", "adopt")
    yield from done("node-1", "undeploy")
    yield from done("node-1", "manage")
    yield from done("node-1", "provide")
    yield from refused("node-1", "active", "deploy", "manage")
    yield patch("node-1", "replace", "/maintenance", True)
    yield from (want("node-1", "active"), want("node-1", "rebuild"))
    yield patch("node-1", "replace", "/maintenance", False)
    yield get(f"/v1/nodes/{uuid_of('node-1')}?fields=provision_state", "1.9")
    yield get(f"/v1/nodes/{uuid_of('node-1')}", "1.1")
    yield want(uuid_of("node-1"), "active", "1.1")
    yield Settle("node-1")
    yield from refused("node-1", "rebuild", "deleted", "undeploy")
    yield want("node-1", "clean", **RESET)
    yield want("node-1", "rescue", rescue_password=" ")
    yield from done("node-1", "rescue", **PASSWORD)
    yield from refused("node-1", "rescue", "unrescue", "deleted", "undeploy")
    yield from done("node-1", "unrescue")
    yield patch("node-1", "add", "/instance_info/image_source", "http://image")
    yield from done("node-1", "rebuild")
    yield from done("node-1", "service", **SERVICE)
    yield from refused("node-1", "abort", "deleted", "undeploy")
    yield from done("node-1", "abort")
    yield from done("node-1", "deleted")
    yield get("/v1/nodes/node-1?fields=instance_info,instance_uuid")


def _locked() -> Iterator[Step]:
    """A node is asked for more while Ironic works on it; its limit is two deployments."""
    for node in ("node-2", "node-3", "node-4"):
        yield from done(node, "manage")
    yield want("node-2", "clean", **RESET)
    yield get(f"/v1/nodes/node-2{STATES_OF}")
    yield patch("node-2", "add", "/extra/x", 1)
    yield send("DELETE", "/v1/nodes/node-2")
    yield send("PUT", "/v1/nodes/node-2/states/power", {"target": "power on"})
    yield send("PUT", "/v1/nodes/node-2/maintenance", {})
    yield from refused("node-2")
    yield Settle("node-2")
    for node in ("node-2", "node-3", "node-4"):
        yield from done(node, "provide")
    yield want("node-2", "deploy")
    yield want("node-3", "active")
    yield want("node-4", "active")
    yield want("node-2", "deleted")
    yield send("PUT", "/v1/nodes/node-2/states/power", {"target": "power on"})
    yield send("PUT", "/v1/nodes/node-2/states/power", {"target": "nonsense"})
    yield get("/v1/nodes?fields=name,target_provision_state&provision_state=deploying")
    yield from (Settle("node-2"), Settle("node-3"))
    yield send("DELETE", "/v1/nodes/node-2")
    yield get("/v1/nodes/node-2?fields=name,extra")


def _crash() -> Iterator[Step]:
    """What worked has failed after a crash."""
    yield from done("node-4", "manage")
    yield want("node-4", "clean", **RESET)
    yield patch("node-2", "add", "/instance_info/image_source", "http://image")
    yield want("node-2", "rebuild")
    yield want("node-3", "deleted")
    yield Restart()
    for node in ("node-2", "node-3", "node-4"):
        yield Settle(node)
        yield get(f"/v1/nodes/{node}{STATES_OF}")
    yield from refused("node-2", "active", "deploy", "rebuild", "deleted", "undeploy")
    yield from refused("node-3", "rebuild", "deleted", "undeploy")
    yield patch("node-3", "add", "/extra/moorage", 1)
    yield from refused("node-4", "manage")
    yield from done("node-4", "manage")
    yield from done("node-2", "active")
    yield from done("node-2", "deleted")


def _spellings() -> Iterator[Step]:
    """A request for a state in many spellings; node-1 is available, so the first is accepted."""
    more: list[tuple[str, str, str | None, bytes]] = [
        ("POST", "/v1/nodes/node-1/states/provision", JSON, b'{"target": "manage"}'),
        ("GET", "/v1/nodes/node-1/states/provision", None, b""),
        ("PUT", "/v1/nodes/node-1/states/nonsense", JSON, b'{"target": "manage"}'),
        ("PUT", "/v1/nodes/node-1/states/provision", None, b'{"target": "manage"}'),
        ("PUT", "/v1/nodes/node-1/states/provision/manage/x", None, b""),
        ("PUT", "/v2/nodes/node-1/states/provision", JSON, b'{"target": "manage"}'),
    ]
    for method, path, kind, body in (*ACCEPTED, *more):
        version = BEFORE_SUFFIX if ".json" in path else RECENT
        yield Ask(method, path, body or None, version, kind)
    yield Ask("PUT", "/v1/nodes/node-1/states/provision.json", b'{"target": "manage"}')


def _removed() -> Iterator[Step]:
    yield send("DELETE", "/v1/nodes/node-9")
    yield send("DELETE", "/v1/nodes/node-4")
    yield get("/v1/nodes/node-4")
    yield want("node-4", "provide")
    yield get("/v1/nodes?fields=name")


def _steps(*parts: Iterator[Step]) -> list[Step]:
    return [step for part in parts for step in part]


STEPS = _steps(
    *(_documents(), _nodes(), _lists(), _changes(), _reported(), _life(), _locked()),
    *(_crash(), _spellings(), _removed()),
)
