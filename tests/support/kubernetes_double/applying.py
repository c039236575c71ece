"""Who manages which field: `managedFields`, and server-side apply.

Fields are the paths of `fieldsV1`, an element for each step, such as `f:spec` or `v:"finalizer"`.
As in structured-merge-diff, an update also owns the objects that it has added (`.`), an apply only
values. A list is one value, unless the schema names the keys of its items.
"""

import copy
import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.support.kubernetes_double import schemas
from tests.support.kubernetes_double.kinds import Kind
from tests.support.kubernetes_double.status import Refused, wrong_option

Way = tuple[str, ...]
Object = dict[str, Any]
Schema = dict[str, Any]

INTERIOR = object()
"""Stands for the value of an object or a list that has fields of its own."""
NOBODYS = ("apiVersion", "kind")
METADATA: Schema = {
    "properties": {
        "annotations": {},
        "labels": {},
        "generateName": {},
        "finalizers": {"x-kubernetes-list-type": "set"},
        "ownerReferences": {
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["uid"],
            "items": {"x-kubernetes-map-type": "atomic"},
        },
    }
}
"""The members of metadata that belong to somebody."""
FIRST = "before-first-apply"
"""Who manages what was there before anything was recorded."""


def now() -> str:
    """Return the present time as Kubernetes writes it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def nodes(found: Object, kind: Kind) -> dict[Way, Any]:
    """Return every managed field of an object with its value, or with INTERIOR."""
    known: dict[Way, Any] = {}
    for name, member in found.items():
        if name == "metadata":
            below = {one: member[one] for one in METADATA["properties"] if one in member}
            known |= dict(_below(below, METADATA, ("f:metadata",)))
        elif name not in NOBODYS:
            schema = kind.schema.get("properties", {}).get(name, {})
            known |= dict(_nodes(member, schema, (f"f:{name}",)))
    return known


def _nodes(value: Any, schema: Schema, way: Way) -> Iterator[tuple[Way, Any]]:
    below = _items(value, schema)
    yield way, INTERIOR if below else value
    if below:
        yield from _below(value, schema, way)


def _below(value: Any, schema: Schema, way: Way) -> Iterator[tuple[Way, Any]]:
    for step, member, its in _items(value, schema):
        yield from _nodes(member, its, (*way, step))


def _items(value: Any, schema: Schema) -> list[tuple[str, Any, Schema]]:
    """Return what is below a value: step, value and schema; nothing: it is one value."""
    if isinstance(value, dict) and schema.get("x-kubernetes-map-type") != "atomic":
        known, others = schema.get("properties", {}), schema.get("additionalProperties", {})
        return [(f"f:{name}", one, known.get(name, others)) for name, one in value.items()]
    if isinstance(value, list) and (kind := schema.get("x-kubernetes-list-type")):
        its = schema.get("items", {})
        return [(_step(one, kind, schema), one, its) for one in value]
    return []


def _step(item: Any, kind: str, schema: Schema) -> str:
    if kind == "set":
        return f"v:{json.dumps(item)}"
    keys = {name: item.get(name) for name in schema["x-kubernetes-list-map-keys"]}
    return f"k:{json.dumps(keys, separators=(',', ':'))}"


def as_fields(ways: Iterable[Way]) -> Object:
    """Return a set of fields as `fieldsV1`."""
    tree: Object = {}
    for way in sorted(ways):
        place = tree
        for step in way[:-1]:
            place = place.setdefault(step, {})
        place.setdefault(way[-1], {})
    for way in ways:
        place = tree
        for step in way:
            place = place[step]
        if place:
            place["."] = {}
    return tree


def of_fields(tree: Object, before: Way = ()) -> Iterator[Way]:
    """Yield the fields of a `fieldsV1`."""
    for step, below in tree.items():
        way = before if step == "." else (*before, step)
        if below:
            yield from of_fields(below, way)
        else:
            yield way


def _owned(entry: Object) -> set[Way]:
    return set(of_fields(entry["fieldsV1"]))


@dataclass(frozen=True)
class Compared:
    """What differs between two versions of an object, without what a request cannot change."""

    changed: set[Way]
    removed: set[Way]


def _compared(old: Object | None, new: Object, kind: Kind, part: str) -> Compared:
    before, after = nodes(old or {}, kind), nodes(new, kind)
    changed = {way for way, value in after.items() if _differs(before, way, value)}
    removed = before.keys() - after.keys()
    return Compared(_reachable(changed, kind, part), _reachable(removed, kind, part))


def _differs(before: dict[Way, Any], way: Way, value: Any) -> bool:
    if way not in before:
        return True
    return INTERIOR not in (value, before[way]) and bool(value != before[way])


def _reachable(ways: Iterable[Way], kind: Kind, part: str) -> set[Way]:
    if part:
        return {way for way in ways if way[0] == "f:status"}
    return {way for way in ways if way[0] != "f:status" or not (kind.status and kind.custom)}


def _entry(kind: Kind, manager: str, operation: str, ways: set[Way], part: str) -> Object:
    found = {
        "manager": manager,
        "operation": operation,
        "apiVersion": kind.api_version,
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
        owned = _owned(entry)
        if not owned & taken:
            found.append(entry)
        elif left := owned - taken:
            found.append({**entry, "fieldsV1": as_fields(left)})
    return found


def after_update(
    old: Object | None, new: Object, kind: Kind, manager: str, part: str
) -> list[Object]:
    """Return `managedFields` after an update: its changes belong to the manager alone.

    What the request says of earlier managers counts, unless it says nothing.
    Of an object with values of wrong types, also in parts that are not stored, nothing is recorded
    any more; nor is it of one of which nothing was recorded before.
    """
    held = (old or {}).get("metadata", {}).get("managedFields", [])
    entries = new["metadata"].get("managedFields") or held
    known = schemas.MISSING if old is None else old
    if (old and not entries) or not schemas.is_typed(new, kind.schema, known):
        return []
    compared = _compared(old, new, kind, part)
    if not compared.changed and not compared.removed:
        return [*entries]
    own = [entry for entry in entries if _is(entry, manager, "Update", part)]
    others = [entry for entry in entries if not _is(entry, manager, "Update", part)]
    held = set().union(*map(_owned, own)) - compared.removed | compared.changed
    kept = _without(others, compared.changed | compared.removed)
    return [*kept, _entry(kind, manager, "Update", held, part)] if held else kept


def applied(
    live: Object, wanted: Object, kind: Kind, manager: str, *, force: bool, part: str = ""
) -> Object:
    """Return an object after a server-side apply. Raises Refused if others manage a field.

    What the manager applied before and now omits is removed, unless others manage it, too.
    """
    if not manager:
        text = "Required value: is required for apply patch"
        raise wrong_option("PatchOptions", "fieldManager", text, "FieldValueRequired")
    entries = live["metadata"].get("managedFields", [])
    if not entries and live["metadata"].get("uid"):
        entries = [_entry(kind, FIRST, "Update", {*nodes(live, kind)}, "")]
    others = [entry for entry in entries if not _is(entry, manager, "Apply", part)]
    earlier = [entry for entry in entries if _is(entry, manager, "Apply", part)]
    values = {way for way, value in nodes(wanted, kind).items() if _is_value(way, value)}
    mine = _reachable(values, kind, part)
    found = _merged(copy.deepcopy(live), wanted, kind)
    owned = mine.union(*map(_owned, others))
    for way in set().union(*map(_owned, earlier)) - owned:
        _remove(found, way, owned)
    compared = _compared(live, found, kind, part)
    fought = [(way, entry) for entry in others for way in sorted(_owned(entry) & compared.changed)]
    if fought and not force:
        raise _conflict(fought)
    kept = _without(others, compared.changed | compared.removed)
    own = [_entry(kind, manager, "Apply", mine, part)] if mine else []
    if own and not compared.changed and not compared.removed:
        # What changes nothing has no time of its own.
        times = [{"time": one["time"]} for one in earlier if "time" in one]
        del own[0]["time"]
        own[0] |= times[0] if times else {}
    found["metadata"]["managedFields"] = [*kept, *own]
    return found


def _is_value(way: Way, value: Any) -> bool:
    return value is not INTERIOR or way[-1].startswith("k:")


def _shown_manager(entry: Object) -> str:
    shown = json.dumps(entry["manager"])
    if part := entry.get("subresource"):
        shown += f' with subresource "{part}"'
    return f"{shown} using {entry['apiVersion']}" if entry["operation"] == "Update" else shown


def _shown(way: Way) -> str:
    steps = []
    for step in way:
        kind, _, rest = step.partition(":")
        if kind == "k":
            pairs = (f"{name}={json.dumps(one)}" for name, one in json.loads(rest).items())
            steps.append(f"[{','.join(pairs)}]")
        else:
            steps.append(f"[={rest}]" if kind == "v" else f".{rest}")
    return "".join(steps)


def _conflict(fought: list[tuple[Way, Object]]) -> Refused:
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {_shown_manager(entry)}",
            "field": _shown(way),
        }
        for way, entry in fought
    ]
    if len(causes) == 1:
        text = f"1 conflict: {causes[0]['message']}: {causes[0]['field']}"
        return Refused(409, f"Apply failed with {text}", causes=causes)
    lines = []
    for manager in sorted({_shown_manager(entry) for _, entry in fought}):
        lines.append(f"conflicts with {manager}:")
        lines += [f"- {_shown(way)}" for way, entry in fought if _shown_manager(entry) == manager]
    text = "\n".join(lines)
    return Refused(409, f"Apply failed with {len(causes)} conflicts: {text}", causes=causes)


def _merged(live: Object, wanted: Object, kind: Kind) -> Object:
    """Return an object with what is applied to it."""
    schema = {"properties": {**kind.schema.get("properties", {}), "metadata": METADATA}}
    merged: Object = _merge(live, wanted, schema)
    return merged


def _merge(live: Any, wanted: Any, schema: Schema) -> Any:
    items = _items(wanted, schema)
    if type(live) is type(wanted) and not wanted and _items(live, schema):
        return live
    if not items or type(live) is not type(wanted):
        return copy.deepcopy(wanted)
    if isinstance(wanted, dict):
        for step, one, its in items:
            name = step.partition(":")[2]
            live[name] = _merge(live[name], one, its) if name in live else copy.deepcopy(one)
        return live
    places = {step: place for place, (step, _, _) in enumerate(_items(live, schema))}
    for step, one, its in items:
        if step in places:
            live[places[step]] = _merge(live[places[step]], one, its)
        else:
            live.append(copy.deepcopy(one))
    return live


def _remove(found: Object, way: Way, owned: set[Way]) -> None:
    """Remove a field, and the objects above it that are empty then and belong to nobody."""
    chain: list[tuple[Any, str]] = []
    place: Any = found
    for step in way:
        key = _find(place, step)
        if key is None:
            return
        chain.append((place, key))
        place = place[key]
    for depth in range(len(chain), 0, -1):
        parent, key = chain[depth - 1]
        if depth < len(way) and (parent[key] or depth == 1 or way[:depth] in owned):
            return
        del parent[key]


def _find(place: Any, step: str) -> Any:
    """Return the name or the place of a member; None: it is not there."""
    kind, _, rest = step.partition(":")
    if kind == "f":
        return rest if isinstance(place, dict) and rest in place else None
    wanted = json.loads(rest)
    for number, one in enumerate(place if isinstance(place, list) else ()):
        if one == wanted if kind == "v" else wanted.items() <= one.items():
            return number
    return None
