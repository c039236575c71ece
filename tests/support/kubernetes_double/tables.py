"""Shows custom resources as tables, as kubectl asks for them."""

from datetime import datetime
from typing import Any

from tests.support.kubernetes_double.applying import now
from tests.support.kubernetes_double.kinds import Kind
from tests.support.kubernetes_double.requests import Received
from tests.support.kubernetes_double.storage import Object

PART: Object = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
MINUTE, HOUR, DAY = 60, 3600, 86400


def wants_table(request: Received) -> bool:
    """Return whether the answer is to be a table. Others are served as objects, without one."""
    first = request.headers.get("accept", "").split(",")[0]
    return "as=Table" in first and "v=v1;" in f"{first};" and bool(request.target.kind.columns)


def table(request: Received, found: Object, *, headers: bool = True) -> Object:
    """Return an object or a list as a table."""
    kind, metadata = request.target.kind, found["metadata"]
    items = found.get("items", [found])
    shown = {name: metadata[name] for name in ("resourceVersion", "continue") if metadata.get(name)}
    if "remainingItemCount" in metadata:
        shown["remainingItemCount"] = metadata["remainingItemCount"]
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": shown,
        "columnDefinitions": _columns(kind) if headers else None,
        "rows": [_row(kind, one) for one in items],
    }


def _columns(kind: Kind) -> list[Object]:
    first = {"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0}
    return [
        first,
        *(
            {"name": name, "type": type_, "format": "", "description": "", "priority": priority}
            for name, type_, _, priority in kind.columns
        ),
    ]


def _row(kind: Kind, found: Object) -> Object:
    cells = [found["metadata"]["name"]]
    cells += [_cell(found, type_, place) for _, type_, place, _ in kind.columns]
    return {"cells": cells, "object": {**PART, "metadata": found["metadata"]}}


def _cell(found: Any, kind: str, place: str) -> str | None:
    for name in place.split(".")[1:]:
        if not isinstance(found, dict) or name not in found:
            return None
        found = found[name]
    if kind == "date":
        return _age(found)
    return str(found).lower() if isinstance(found, bool) else str(found)


def _age(text: str) -> str:
    """Return how long ago something was, in the shortest words."""
    passed = datetime.fromisoformat(now()) - datetime.fromisoformat(text)
    seconds = int(passed.total_seconds())
    if seconds < 2 * MINUTE:
        return f"{max(seconds, 0)}s"
    if seconds < 3 * HOUR:
        return f"{seconds // MINUTE}m"
    return f"{seconds // HOUR}h" if seconds < 2 * DAY else f"{seconds // DAY}d"
