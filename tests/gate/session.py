"""One session of openstacksdk, recorded without and with the gate: the answers must be the same.

Statuses, reasons, the names, spelling, order and values of headers, and bodies are compared. Only
what differs between any two sessions is replaced: ids of requests, UUIDs, times, locks, addresses.
"""

import re
from dataclasses import dataclass
from typing import Any

import openstack
import requests
from keystoneauth1.noauth import NoAuth
from keystoneauth1.session import Session

from tests.gate import controls
from tests.support.ironic import Ironic

VERSIONS = ("1.1", "1.31", "1.82", "1.95")
ACTIVE_SECONDS_MAX = 60
WORKING = '"provision_state": "deploying"'
LEAST = 40
"""Fewer answers mean that the session has broken off."""

ALIKE = (
    (re.compile(r"req-[0-9a-f-]{36}"), "REQUEST"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UUID"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(\+00:00|Z)?"), "TIME"),
    (re.compile(r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT"), "DATE"),
    (re.compile(r"127\.0\.0\.1:\d+"), "ADDRESS"),
    # The conductor locks each node now and then, to read its power state.
    (re.compile(r'"reservation": (null|"[^"]*")'), '"reservation": "LOCK"'),
)


@dataclass(frozen=True)
class Answer:
    """What a client has received."""

    asked: str
    status: str
    headers: tuple[tuple[str, str], ...]
    body: str


def normal(text: str) -> str:
    """Return text without what differs between two sessions."""
    for pattern, word in ALIKE:
        text = pattern.sub(word, text)
    return text


class Recorder:
    """A session of requests that keeps each answer."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.session = requests.Session()
        self.session.hooks["response"].append(self._keep)

    def _keep(self, response: requests.Response, *_: Any, **__: Any) -> None:
        headers = tuple((name, normal(value)) for name, value in response.raw.headers.items())
        self.answers.append(
            Answer(
                asked=normal(f"{response.request.method} {response.request.url}"),
                status=f"{response.status_code} {response.reason}",
                # Its value follows from that of times and addresses in the body.
                headers=tuple(pair for pair in headers if pair[0].lower() != "content-length"),
                body=normal(response.text),
            )
        )


def recorded(url: str, node: str) -> list[Answer]:
    """Let openstacksdk do what operators do with a node; return all answers."""
    recorder = Recorder()
    session = Session(auth=NoAuth(endpoint=url), session=recorder.session)
    client = openstack.connection.Connection(
        session=session, baremetal_endpoint_override=url
    ).baremetal
    plain = {"endpoint_override": url, "raise_exc": False}
    for version in VERSIONS:
        for path in ("/", "/v1", "/v1/nodes?limit=2", "/v1/nodes/nobody", f"/v1/nodes/{node}"):
            client.get(path, microversion=version, **plain)
    client.get("/v1/nodes", microversion="9.9", **plain)
    client.get("/v1/nowhere", **plain)
    client.get("/v1/nodes?fields=nothing", **plain)
    client.put(f"/v1/nodes/{node}/states/provision", json={"target": "nothing"}, **plain)
    found = client.get_node(node)
    list(client.nodes(details=True, limit=3))
    client.patch_node(found, [{"op": "add", "path": "/extra/checked", "value": "yes"}])
    client.validate_node(node, required=None)
    client.set_node_power_state(node, "power on")
    port = client.create_port(node_id=found.id, address="52:54:00:12:34:56")
    list(client.ports(node_id=found.id))
    client.delete_port(port)
    client.set_node_maintenance(node, "checked")
    client.unset_node_maintenance(node)
    client.set_node_provision_state(node, "active")
    client.wait_for_nodes_provision_state([node], "active", timeout=ACTIVE_SECONDS_MAX)
    client.delete(f"/v1/nodes/{node}", microversion="1.95", status_code_retries=0, **plain)
    return recorder.answers


def comparable(answers: list[Answer]) -> list[Answer]:
    """Return answers that do not depend on when they were asked for.

    A client asks again until a node is ready, and while Ironic works, each answer may differ.
    """
    settled = [one for one in answers if WORKING not in one.body]
    return [one for one, before in zip(settled, [None, *settled], strict=False) if one != before]


def check_session(ironic: Ironic, gate: str, node: str) -> int:
    """Compare a session without the gate with one through it; return how many answers it had."""
    # The first session leaves traces on the node that the other two find alike.
    sessions = []
    for url in (ironic.url, ironic.url, gate):
        sessions.append(comparable(recorded(url, node)))
        controls.undeploy(ironic, [node])
    _, direct, through = sessions
    for one, other in zip(direct, through, strict=False):
        assert one == other, f"\n{one}\ninstead of\n{other}"
    assert len(direct) == len(through) >= LEAST, (len(direct), len(through))
    return len(direct)
