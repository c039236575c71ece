"""Answers requests as Ironic 39 does, without HTTP."""

import copy
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.support.ironic_double import documents, errors, verbs
from tests.support.ironic_double.documents import node_view
from tests.support.ironic_double.fleet import HOST, Fleet, Node
from tests.support.ironic_double.lists import node_list
from tests.support.ironic_double.machine import UPDATE_ALLOWED
from tests.support.ironic_double.requests import Received

NAME = re.compile(r"[A-Za-z0-9._~-]+")
NAMES_SINCE = 5
"""The first minor version in which a node can be found by its name."""
CONDUCTORS_SINCE = 49
POWERS = {"power on": "power on", "power off": "power off", "rebooting": "power on"}


@dataclass(frozen=True)
class Reply:
    """An answer; `body` None: it has none. `versioned`: it names the versions of the API."""

    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    version: int | None = None
    versioned: bool = True


class Api:
    """Ironic's API for the nodes of a fleet."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._kinds: dict[str, Callable[[Received], Reply]] = {
            "document": self._document,
            "list": self._list,
            "read": self._read,
            "create": self._create,
            "patch": self._patch,
            "delete": self._delete,
            "provision": self._provision,
            "power": self._power,
            "maintenance": self._maintenance,
            "states": self._states,
            "validate": self._validate,
            "heartbeat": self._heartbeat,
            "traits": self._traits,
            "conductors": self._conductors,
            "other": self._other,
        }

    def answer(self, request: Received) -> Reply:
        """Carry out a request and return the answer, also if it is refused."""
        try:
            return self._kinds[request.kind](self._routed(request))
        except errors.Refused as refused:
            return reply_of(refused, request)

    def _routed(self, request: Received) -> Received:
        """Refuse what Ironic's routing refuses."""
        names = request.names
        if request.kind == "other" and names != ["v1"] and request.at_nodes is None:
            raise errors.routing(404, "Not Found")
        request.minor  # noqa: B018 - an unknown version is refused
        node = request.node
        if request.at_nodes and node is not None and not NAME.fullmatch(node):
            raise errors.routing(400, "Bad Request", f"Expected UUID or name for node: {node}")
        return request

    def _find(self, request: Received) -> Node:
        return self._fleet.find(request.node or "", by_name=request.minor >= NAMES_SINCE)

    def _document(self, request: Received) -> Reply:
        base = request.base
        match request.names:
            case []:
                return Reply(200, documents.versions(base))
            case ["v1"]:
                return Reply(200, documents.first_version(base))
        return Reply(200, documents.drivers(base))

    def _conductors(self, request: Received) -> Reply:
        if request.minor < CONDUCTORS_SINCE:
            raise errors.fault(404, "The API is not supported for this version")
        fields = request.query["fields"].split(",") if "fields" in request.query else None
        return Reply(200, documents.conductors(request.base, self._fleet.conductors, fields))

    def _list(self, request: Received) -> Reply:
        return Reply(200, node_list(self._fleet, request))

    def _read(self, request: Received) -> Reply:
        fields = request.query["fields"].split(",") if "fields" in request.query else None
        documents.check_fields(fields or (), request.minor)
        return Reply(200, node_view(self._find(request), request.base, request.minor, fields))

    def _states(self, request: Received) -> Reply:
        view = documents.states_view(self._find(request), request.base, request.minor)
        return Reply(200, view)

    def _validate(self, request: Received) -> Reply:
        self._find(request)
        return Reply(200, documents.validation())

    def _create(self, request: Received) -> Reply:
        members = request.json
        if "driver" not in members:
            raise errors.fault(400, "Schema error for node: 'driver' is a required property")
        if strange := members.keys() - {*documents.PATCHABLE, "uuid"}:
            shown = ", ".join(f"'{name}'" for name in sorted(strange))
            text = f"Additional properties are not allowed ({shown} was unexpected)"
            raise errors.fault(400, f"Schema error for node: {text}")
        name = members.get("name")
        if name is not None and not NAME.fullmatch(name):
            raise errors.fault(400, f"Cannot create node with invalid name '{name}'")
        if members["driver"] != "fake-hardware":
            raise errors.fault(
                400,
                "No valid host was found. Reason: No conductor service registered which supports "
                f'driver {members["driver"]} for conductor group "". Ensure the driver is valid '
                "and enabled.",
            )
        self._check_free(name)
        node = self._fleet.add(members)
        place = {"Location": f"{request.base}/v1/nodes/{node.uuid}"}
        return Reply(201, node_view(node, request.base, request.minor), place)

    def _check_free(self, name: str | None) -> None:
        if name is not None and any(node.name == name for node in self._fleet.nodes.values()):
            raise errors.fault(409, f"A node with name {name} already exists.")

    def _patch(self, request: Received) -> Reply:
        changes = request.json
        _check_patch(changes)
        node = self._find(request)
        if node.goal and node.state not in UPDATE_ALLOWED:
            text = "can not be updated while a state transition is in progress."
            raise errors.fault(409, f"Node {request.node} {text}")
        members = _patched(copy.deepcopy({**documents.DEFAULTS, **node.members}), changes)
        name = members["name"]
        if name != node.name:
            if not NAME.fullmatch(name or ""):
                text = f"Cannot change name to invalid name '{name}'"
                raise errors.fault(400, f"Node {request.node}: {text}")
            self._check_free(name)
        if node.reservation:
            raise errors.locked(node.uuid, node.reservation)
        self._fleet.touch(node, **members)
        # Ironic shows the node while its own change still locks it.
        view = node_view(node, request.base, request.minor)
        return Reply(200, {**view, "reservation": HOST})

    def _delete(self, request: Received) -> Reply:
        self._fleet.remove(self._find(request))
        return Reply(204)

    def _provision(self, request: Received) -> Reply:
        ident = verbs.carry_out(self._fleet, request, by_name=request.minor >= NAMES_SINCE)
        return Reply(202, headers={"Location": f"{request.base}/v1/nodes/{ident}/states"})

    def _power(self, request: Received) -> Reply:
        node, target = self._find(request), str(request.parameters.get("target"))
        if target not in POWERS:
            raise errors.wrong_state(target, str(request.node), node.power)
        if node.state in ("cleaning", "clean wait"):
            raise errors.wrong_state(target, str(request.node), node.state)
        if node.reservation:
            raise errors.locked(node.uuid, node.reservation)
        node.power = POWERS[target]
        self._fleet.touch(node)
        return Reply(202, headers={"Location": f"{request.base}/v1/nodes/{request.node}/states"})

    def _maintenance(self, request: Received) -> Reply:
        node = self._find(request)
        if node.reservation:
            raise errors.locked(node.uuid, node.reservation)
        on = request.method == "PUT"
        reason = request.parameters.get("reason") if on else None
        self._fleet.touch(node, maintenance=on, maintenance_reason=reason)
        return Reply(202)

    def _traits(self, request: Received) -> Reply:
        node = self._find(request)
        if request.method == "GET":
            return Reply(200, {"traits": sorted(node.members.get("traits", ()))})
        traits = request.json["traits"] if request.method == "PUT" else []
        if node.reservation:
            raise errors.locked(node.uuid, node.reservation)
        self._fleet.touch(node, traits=sorted({*traits}))
        return Reply(204)

    def _heartbeat(self, request: Received) -> Reply:
        self._fleet.find(request.names[2])
        if "agent_token" not in request.parameters:
            raise errors.fault(400, "Agent token is required for heartbeat processing.")
        return Reply(202)

    def _other(self, request: Received) -> Reply:
        """Answer what the double knows nothing of."""
        match request.method, request.names:
            case "DELETE", ["v1", "nodes"]:
                raise errors.needed("node_ident")
            case "PUT", ["v1", "nodes"]:
                raise errors.routing(
                    405, "Method Not Allowed", versions="no", Allow="DELETE, GET, PATCH, POST"
                )
            case "POST", ["v1"]:
                text = "The server could not comply with the request since it is either malformed"
                raise errors.fault(405, f"{text} or otherwise incorrect.")
            case "GET", ["v1", "nodes", _, "states", "provision"]:
                text = "NodeStatesController.get() takes 2 positional arguments but 3 were given"
                raise errors.fault(500, text)
            case _, ["v1", "nodes", _, "states", *_]:
                raise errors.routing(405, "Method Not Allowed", versions="no", Allow="GET")
            case "GET", ["v1", "nodes", _, field]:
                documents.check_fields([field], request.minor)
        raise errors.routing(404, "Not Found")


def reply_of(refused: errors.Refused, request: Received) -> Reply:
    """Return a refusal as Ironic sends it: the error is JSON, as a text in JSON."""
    headers = dict(refused.headers)
    versioned = headers.pop("versions", "") != "no" and refused.members.get("title") not in (
        *("Not Found", "Bad Request"),
    )
    body = {"error_message": json.dumps(refused.members)}
    return Reply(refused.status, body, headers, versioned=versioned)


def _check_patch(changes: Any) -> None:
    if not isinstance(changes, list):
        raise errors.fault(400, f"Schema error for patch: {changes} is not of type 'array'")
    for change in changes:
        if change["op"] not in ("add", "replace", "remove"):
            text = f"'{change['op']}' is not one of ['add', 'replace', 'remove']"
            raise errors.fault(400, f"Schema error for patch: {text}")
        if change["path"].split("/")[1] not in documents.PATCHABLE:
            allowed = ", ".join(documents.PATCHABLE)
            text = f"Only the following can be updated: {allowed}"
            raise errors.fault(400, f"Cannot patch {change['path']}. {text}")


def _patched(members: dict[str, Any], changes: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the members after a JSON patch. Raises Refused."""
    for change in changes:
        *way, last = change["path"].strip("/").split("/")
        place = members
        for name in way:
            place = place[name]
        if change["op"] != "remove":
            place[last] = change["value"]
        elif way and last not in place:
            reason = f"can't remove a non-existent object '{last}'"
            raise errors.fault(400, f"Couldn't apply patch '{change}'. Reason: {reason}")
        elif way:
            del place[last]
        else:
            place[last] = documents.DEFAULTS[last]
    return members
