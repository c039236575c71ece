"""Lists of nodes: filters, order, pages."""

import re
from collections.abc import Mapping
from typing import Any

from tests.support.ironic_double import documents, errors
from tests.support.ironic_double.documents import node_view
from tests.support.ironic_double.fleet import Fleet, Node
from tests.support.ironic_double.machine import STATES
from tests.support.ironic_double.requests import Received

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MOST_NODES = 1_000
"""Ironic's default of `max_limit`: a list is never longer."""
FILTERS = ("driver", "resource_class", "owner", "conductor_group", "shard", "lessee")
PARAMETERS = {
    *("fields", "limit", "marker", "detail", "provision_state", "maintenance", *FILTERS),
    *("sort_key", "sort_dir"),
}
KEPT = ("maintenance", "detail")
"""Filters that the link to the next page has; as Ironic's, it has forgotten all others."""


def node_list(fleet: Fleet, request: Received) -> dict[str, Any]:
    """Return a page of the list that a request wants. Raises Refused."""
    query = request.query
    if strange := query.keys() - PARAMETERS:
        raise errors.fault(400, f"Unexpected arguments: {', '.join(sorted(strange))}")
    fields = _fields(request)
    limit = _limit(query.get("limit"))
    state = query.get("provision_state")
    if state is not None and state not in STATES:
        raise errors.fault(400, f'Provision state "{state}" is not valid')
    nodes = _ordered(fleet, query.get("sort_key", "id"), query.get("sort_dir", "asc"))
    if "marker" in query:
        nodes = nodes[nodes.index(_marked(fleet, query["marker"])) + 1 :]
    listed = [node for node in nodes if node.uuid not in fleet.hidden]
    shown = [node for node in listed if _wanted(node, query)][:limit]
    page: dict[str, Any] = {
        "nodes": [node_view(node, request.base, request.minor, fields) for node in shown]
    }
    if len(shown) == limit:
        page["next"] = _next(request, fields, limit, shown[-1])
    return page


def _next(request: Received, fields: list[str] | None, limit: int, last: Node) -> str:
    query = request.query
    kept = {"sort_key": query.get("sort_key", "id"), "sort_dir": query.get("sort_dir", "asc")}
    for name in KEPT:
        if name in query and (name == "detail" or _true(query[name])):
            kept[name] = str(_true(query[name]))
    kept |= {"fields": ",".join(fields)} if fields is not None else {}
    kept |= {"limit": str(limit), "marker": last.uuid}
    parameters = "&".join(f"{name}={value}" for name, value in kept.items())
    return f"{request.base}/{'/'.join(request.names)}?{parameters}"


def _fields(request: Received) -> list[str] | None:
    """Return the columns of a list; None: all. Raises Refused."""
    query = request.query
    detail = request.names[-1] == "detail" or _true(query.get("detail", ""))
    if "fields" not in query:
        return None if detail else list(documents.USUAL_FIELDS)
    if detail:
        raise errors.fault(400, "Can not specify ?detail=True and fields in the same request.")
    fields = query["fields"].split(",")
    strange = documents.unknown(fields, request.minor)
    if strange is not None:
        raise errors.fault(500, f"type object 'Node' has no attribute '{strange}'")
    documents.check_selectable(fields)
    return fields


def _ordered(fleet: Fleet, key: str, direction: str) -> list[Node]:
    if direction not in ("asc", "desc"):
        text = "Acceptable values are 'asc' or 'desc'"
        raise errors.fault(400, f"Invalid sort direction: {direction}. {text}")
    if isinstance(documents.DEFAULTS.get(key), dict):
        raise errors.fault(400, f"The sort_key value {key} is an invalid field for sorting")
    if key != "id" and documents.unknown([key], documents.NEWEST) is not None:
        raise errors.fault(400, f'The sort_key value "{key}" is an invalid field for sorting')

    def value_of(node: Node) -> str | None:
        if key in ("created_at", "updated_at"):  # without a view of each node, for long lists
            seconds = node.created if key == "created_at" else node.updated
            return None if seconds is None else f"{seconds:020.6f}"
        value = None if key == "id" else node_view(node, "", documents.NEWEST).get(key)
        return None if value is None else str(value)

    def place(node: Node) -> tuple[bool, str, int]:
        value = value_of(node)
        return (value is not None) is fleet.nothing_last, value or "", node.number

    return sorted(fleet.nodes.values(), key=place, reverse=direction == "desc")


def _marked(fleet: Fleet, marker: str) -> Node:
    if not UUID.fullmatch(marker):
        raise errors.fault(400, f"Expected UUID for marker: {marker}")
    return fleet.find(marker)


def _wanted(node: Node, query: Mapping[str, str]) -> bool:
    members = {**documents.DEFAULTS, **node.members}
    return (
        query.get("provision_state", node.state) == node.state
        and all(query.get(name, members[name]) == members[name] for name in FILTERS)
        and ("maintenance" not in query or members["maintenance"] == _true(query["maintenance"]))
    )


def _limit(text: str | None) -> int:
    if text is None:
        return MOST_NODES
    try:
        limit = int(text)
    except ValueError:
        raise errors.fault(400, f"Expected an integer for limit: {text}") from None
    if limit <= 0:
        raise errors.fault(400, "Limit must be positive")
    return min(limit, MOST_NODES)


def _true(text: str) -> bool:
    return text.lower() in ("true", "1", "yes", "on", "t", "y")
