"""Preserves JSON members of newer releases that this one does not know when it rewrites a row.

Used only once a newer release has written to the database (`clock.newest_version`): a plan that
writes JSON then first reads the stored values, within its transaction, and copies every unknown
member to the new value. Columns that this release does not know are never changed.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from msgspec import inspect, json

from moorage.core.admission.booking_model import Booking
from moorage.core.admission.model import Lease, Pool, Slot, Template
from moorage.core.fleet.model import Agent, Group
from moorage.core.fleet.reporters import Member, ReporterGroup
from moorage.core.ledger.model import Inventory
from moorage.store.admission.changes import slot_key
from moorage.store.api import Done, Plan, Query, Row, Statement, Write, advanced
from moorage.store.encoding import key_set

T = TypeVar("T")


class _Stored(NamedTuple):
    """Where a statement writes JSON, and the query that finds the stored value."""

    query: str
    """Returns keys and JSON, for a set of first keys."""
    keys: tuple[int, ...]
    """Key columns in the statement's rows."""
    type: inspect.Type
    text: int = -1
    """The column of the JSON in the statement's rows: the last one, unless it is named."""


_inventories = inspect.type_info(dict[str, Inventory])
_WRITES = {
    "provider_use": _Stored("inventories_stored", (3,), _inventories, 2),
    "inventories_write": _Stored("inventories_stored", (1,), _inventories, 0),
    "pool_upsert": _Stored("pools_stored", (0,), inspect.type_info(Pool)),
    "template_upsert": _Stored("templates_stored", (0,), inspect.type_info(Template)),
    "slot_upsert": _Stored("slots_stored", (0, 1), inspect.type_info(Slot)),
    "booking_upsert": _Stored("bookings_stored", (0,), inspect.type_info(Booking)),
    "lease_upsert": _Stored("leases_stored", (0,), inspect.type_info(Lease)),
    "agent_group_upsert": _Stored("agent_groups_stored", (0,), inspect.type_info(Group)),
    "agent_upsert": _Stored("agents_stored", (0,), inspect.type_info(Agent)),
    "reporter_group_upsert": _Stored(
        "reporter_groups_stored", (0,), inspect.type_info(ReporterGroup)
    ),
    "reporter_upsert": _Stored("reporters_stored", (0, 1), inspect.type_info(Member)),
}
_KINDS = {
    "pool": ("pools_stored", inspect.type_info(Pool)),
    "pool_template": ("templates_stored", inspect.type_info(Template)),
    "slot": ("slots_stored", inspect.type_info(Slot)),
    "booking": ("bookings_stored", inspect.type_info(Booking)),
    "lease": ("leases_stored", inspect.type_info(Lease)),
    "group": ("agent_groups_stored", inspect.type_info(Group)),
    "agent": ("agents_stored", inspect.type_info(Agent)),
    "reporter_group": ("reporter_groups_stored", inspect.type_info(ReporterGroup)),
    "reporter": ("reporters_stored", inspect.type_info(Member)),
}
_inventory = inspect.type_info(Inventory)

_READS: dict[str, Callable[[str], Query]] = {
    "inventories_stored": lambda keys: Query("inventories_stored", (keys,)),
    "pools_stored": lambda keys: Query("pools_stored", (keys,)),
    "templates_stored": lambda keys: Query("templates_stored", (keys,)),
    "slots_stored": lambda keys: Query("slots_stored", (keys,)),
    "bookings_stored": lambda keys: Query("bookings_stored", (keys,)),
    "leases_stored": lambda keys: Query("leases_stored", (keys,)),
    "agent_groups_stored": lambda keys: Query("agent_groups_stored", (keys,)),
    "agents_stored": lambda keys: Query("agents_stored", (keys,)),
    "reporter_groups_stored": lambda keys: Query("reporter_groups_stored", (keys,)),
    "reporters_stored": lambda keys: Query("reporters_stored", (keys,)),
}


def kept(plan: Plan[T]) -> Plan[T]:
    """Run a plan, preserving the unknown members of the rows that it writes."""
    stored: dict[str, dict[tuple[str, ...], Any]] = {}
    found = advanced(plan, None)
    while not isinstance(found, Done):
        queries = _queries(found)
        if queries:
            for query, rows in zip(queries, (yield queries), strict=True):
                known = stored.setdefault(query.block, {})
                known.update((tuple(keys), json.decode(text)) for *keys, text in rows)
        found = advanced(plan, (yield [_completed(one, stored) for one in found]))
    return found.answer


def _queries(statements: Sequence[Statement]) -> list[Query]:
    wanted: dict[str, set[str]] = {}
    for one in statements:
        place = _WRITES.get(one.block)
        if isinstance(one, Write) and place is not None:
            wanted.setdefault(place.query, set()).update(row[place.keys[0]] for row in one.rows)
    return [_READS[block](key_set(keys)) for block, keys in wanted.items()]


def _completed(statement: Statement, stored: dict[str, dict[tuple[str, ...], Any]]) -> Statement:
    if not isinstance(statement, Write):
        return statement
    if statement.block == "change_insert":
        return statement._replace(rows=[_change(row, stored) for row in statement.rows])
    place = _WRITES.get(statement.block)
    if place is None:
        return statement
    rows: list[Row] = []
    for row in statement.rows:
        old = stored[place.query].get(tuple(row[n] for n in place.keys))
        values = [*row]
        values[place.text] = _merged_text(place.type, old, row[place.text])
        rows.append(tuple(values))
    return statement._replace(rows=rows)


def _change(row: Row, stored: dict[str, dict[tuple[str, ...], Any]]) -> Row:
    """Complete a change row in the same way as the row that it describes."""
    n, at, kind, key, body = row
    if body is None:
        return row
    if kind == "inventory":
        provider, name = key.split("/", 1)
        held = stored.get("inventories_stored", {}).get((provider,)) or {}
        return (n, at, kind, key, _merged_text(_inventory, held.get(name), body))
    if kind in _KINDS:
        query, described = _KINDS[kind]
        keys = _keys_of(kind, key)
        old = stored.get(query, {}).get(keys)
        return (n, at, kind, key, _merged_text(described, old, body))
    return row


def _keys_of(kind: str, key: str) -> tuple[str, ...]:
    if kind == "slot":
        return slot_key(key)
    return tuple(key.split("/", 1)) if kind == "reporter" else (key,)


def _merged_text(described: inspect.Type, old: Any, text: str) -> str:
    if old is None:
        return text
    return json.encode(_merged(described, old, json.decode(text))).decode()


def _merged(described: inspect.Type, old: Any, new: Any) -> Any:
    """Copy the members that the type does not know from an old value to a new one."""
    if isinstance(described, inspect.UnionType):
        for part in described.types:
            new = _merged(part, old, new)
    elif isinstance(old, dict) and isinstance(new, dict):
        if isinstance(described, inspect.StructType):
            known = {field.encode_name: field.type for field in described.fields}
            for name, value in old.items():
                if name not in known:
                    new[name] = value
                elif name in new:
                    new[name] = _merged(known[name], value, new[name])
        elif isinstance(described, inspect.DictType):
            for name in old.keys() & new.keys():
                new[name] = _merged(described.value_type, old[name], new[name])
    elif isinstance(old, list) and isinstance(new, list):
        item = getattr(described, "item_type", None)
        if isinstance(item, inspect.StructType):
            return [_merged(item, _same(item, old, one), one) for one in new]
        if item is not None:  # of lists of lists, the innermost values are found by what they are
            inner = [one for part in old if isinstance(part, list) for one in part]
            return [_merged(item, inner, one) if isinstance(one, list) else one for one in new]
    return new


def _same(described: inspect.StructType, old: list[Any], one: Any) -> Any:
    """Return the first old value whose known members equal `one`; `one` if there is none."""
    known = {field.encode_name for field in described.fields}
    for other in old:
        if isinstance(other, dict) and {k: v for k, v in other.items() if k in known} == one:
            return other
    return one
