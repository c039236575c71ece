"""Merge patches (RFC 7386) and JSON patches (RFC 6902)."""

import copy
from typing import Any

from tests.support.kubernetes_double.status import Refused, bad_request

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"

UNDECODED = "error decoding patch: json: cannot unmarshal"
REJECTED = "the server rejected our request due to an error in our request"


def merged(target: Any, patch: Any) -> Any:
    """Return a value after a merge patch: null removes, lists are replaced.

    A strategic patch is treated alike; its directives (`$patch`) are refused, never ignored.
    """
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    if strange := [name for name in patch if name.startswith("$")]:
        raise bad_request(f"the double knows no directives of strategic patches: {strange}")
    found = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = merged(found.get(name), value)
    return found


def json_patched(target: Any, operations: Any) -> Any:
    """Return a value after a JSON patch. Raises Refused, also if a `test` fails."""
    if not isinstance(operations, list):
        raise bad_request(f"{UNDECODED} object into Go value of type []handlers.jsonPatchOp")
    found = copy.deepcopy(target)
    for operation in operations:
        try:
            found = _step(found, operation)
        except (KeyError, IndexError, ValueError, TypeError):
            raise Refused(422, REJECTED, kind="") from None
    return found


def _step(document: Any, operation: dict[str, Any]) -> Any:
    way = _parts(operation["path"])
    match operation["op"]:
        case "add":
            return _added(document, way, operation["value"])
        case "remove":
            return _removed(document, way)
        case "replace":
            # A member of an object that is missing is added, as by the library of the server.
            if not isinstance(_read(document, way[:-1]), dict):
                document = _removed(document, way)
            return _added(document, way, operation["value"])
        case "test":
            wanted = operation.get("value")
            # A member that is missing equals null, as in the library that the server uses.
            if (_read(document, way) if wanted is not None else _or_none(document, way)) != wanted:
                raise ValueError(operation["path"])
            return document
        case "move" | "copy":
            source = _parts(operation["from"])
            value = copy.deepcopy(_read(document, source))
            if operation["op"] == "move":
                document = _removed(document, source)
            return _added(document, way, value)
    raise ValueError(operation["op"])


def _parts(pointer: str) -> list[str]:
    if pointer and not pointer.startswith("/"):
        raise ValueError(pointer)
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def _or_none(document: Any, way: list[str]) -> Any:
    parent = _read(document, way[:-1])
    return parent.get(way[-1]) if isinstance(parent, dict) else _read(document, way)


def _read(document: Any, way: list[str]) -> Any:
    for part in way:
        document = document[int(part)] if isinstance(document, list) else document[part]
    return document


def _added(document: Any, way: list[str], value: Any) -> Any:
    if not way:
        return value
    parent, last = _read(document, way[:-1]), way[-1]
    if isinstance(parent, list):
        place = len(parent) if last == "-" else int(last)
        if place > len(parent):
            raise IndexError(place)
        parent.insert(place, value)
    else:
        parent[last] = value
    return document


def _removed(document: Any, way: list[str]) -> Any:
    if not way:
        return None
    parent, last = _read(document, way[:-1]), way[-1]
    if isinstance(parent, list):
        del parent[int(last)]
    else:
        del parent[last]
    return document
