"""Who manages which field: `managedFields`, and server-side apply.

Members of objects are fields; a list is one field as a whole, as in a custom resource without
markers for lists.
"""

import copy
import time
from collections.abc import Iterator
from typing import Any

from tests.support.kubernetes_double.status import Refused, bad_request

Way = tuple[str, ...]
Object = dict[str, Any]

NOBODYS = ("apiVersion", "kind")
METADATA_MANAGED = ("annotations", "labels", "finalizers", "ownerReferences")
"""The members of metadata that belong to somebody."""


def now() -> str:
    """Return the present time as Kubernetes writes it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def leaves(value: Object, before: Way = ()) -> Iterator[tuple[Way, Any]]:
    """Yield every managed field of an object with its value."""
    for name, member in value.items():
        way = (*before, name)
        if (len(way) == 1 and name in NOBODYS) or (
            before == ("metadata",) and name not in METADATA_MANAGED
        ):
            continue
        if isinstance(member, dict) and member:
            yield from leaves(member, way)
        elif way != ("metadata",):
            yield way, member


def as_fields(ways: set[Way]) -> Object:
    """Return a set of fields as `fieldsV1`."""
    tree: Object = {}
    for way in sorted(ways):
        place = tree
        for name in way:
            place = place.setdefault(f"f:{name}", {})
    return tree


def of_fields(tree: Object, before: Way = ()) -> Iterator[Way]:
    """Yield the fields of a `fieldsV1`."""
    for name, below in tree.items():
        way = (*before, name.removeprefix("f:"))
        if below:
            yield from of_fields(below, way)
        else:
            yield way


def _owned(entry: Object) -> set[Way]:
    return set(of_fields(entry["fieldsV1"]))


def _entry(kind: str, manager: str, operation: str, ways: set[Way], part: str) -> Object:
    found = {
        "manager": manager,
        "operation": operation,
        "apiVersion": kind,
        "time": now(),
        "fieldsType": "FieldsV1",
        "fieldsV1": as_fields(ways),
    }
    return {**found, "subresource": part} if part else found


def _is(entry: Object, manager: str, operation: str, part: str) -> bool:
    found = (entry["manager"], entry["operation"], entry.get("subresource", ""))
    return found == (manager, operation, part)


def _without(entries: list[Object], taken: set[Way]) -> list[Object]:
    found = []
    for entry in entries:
        if left := _owned(entry) - taken:
            found.append({**entry, "fieldsV1": as_fields(left)})
    return found


def after_update(old: Object | None, new: Object, manager: str, part: str) -> list[Object]:
    """Return `managedFields` after an update: its changes belong to the manager alone."""
    before = dict(leaves(old)) if old else {}
    after = dict(leaves(new))
    entries = (old or {}).get("metadata", {}).get("managedFields", [])
    changed = {way for way, value in after.items() if before.get(way, leaves) != value}
    gone = before.keys() - after.keys()
    own = [entry for entry in entries if _is(entry, manager, "Update", part)]
    others = [entry for entry in entries if not _is(entry, manager, "Update", part)]
    held = set().union(*map(_owned, own)) - gone | changed
    kept = _without(others, changed | gone)
    return [*kept, _entry(new["apiVersion"], manager, "Update", held, part)] if held else kept


def applied(live: Object, wanted: Object, manager: str, *, force: bool, part: str = "") -> Object:
    """Return an object after a server-side apply. Raises Refused if others manage a field.

    What the manager applied before and now omits is removed, unless others manage it, too.
    """
    if not manager:
        raise bad_request("PatchOptions.meta.k8s.io is invalid: fieldManager: Required value")
    entries = live["metadata"].get("managedFields", [])
    others = [entry for entry in entries if not _is(entry, manager, "Apply", part)]
    earlier = [entry for entry in entries if _is(entry, manager, "Apply", part)]
    before, new = dict(leaves(live)), dict(leaves(wanted))
    differing = {way for way, value in new.items() if before.get(way, leaves) != value}
    fought = [
        (way, entry["manager"])
        for entry in others
        for way in sorted(_owned(entry))
        if any(_touches(way, mine) for mine in differing)
    ]
    if fought and not force:
        raise _conflict(fought)
    found = copy.deepcopy(live)
    for way in set().union(*map(_owned, earlier)) - new.keys():
        if not any(way in _owned(entry) for entry in others):
            _remove(found, way)
    for way, value in new.items():
        _put(found, way, value)
    kept = _without(others, {way for way, _ in fought})
    mine = _entry(wanted["apiVersion"], manager, "Apply", set(new), part)
    found["metadata"]["managedFields"] = [*kept, mine]
    return found


def _touches(one: Way, other: Way) -> bool:
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def _conflict(fought: list[tuple[Way, str]]) -> Refused:
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f'conflict with "{manager}"',
            "field": "." + ".".join(way),
        }
        for way, manager in fought
    ]
    shown = "; ".join(f"{cause['message']}: {cause['field']}" for cause in causes)
    conflicts = "1 conflict" if len(causes) == 1 else f"{len(causes)} conflicts"
    return Refused(409, f"Apply failed with {conflicts}: {shown}", causes=causes)


def _put(found: Object, way: Way, value: Any) -> None:
    for name in way[:-1]:
        below = found.get(name)
        if not isinstance(below, dict):
            below = found[name] = {}
        found = below
    found[way[-1]] = copy.deepcopy(value)


def _remove(found: Object, way: Way) -> None:
    chain = []
    for name in way[:-1]:
        if not isinstance(found.get(name), dict):
            return
        chain.append((found, name))
        found = found[name]
    found.pop(way[-1], None)
    for parent, name in reversed(chain):
        if parent[name] or name in ("metadata", "spec", "status"):
            break
        del parent[name]
