"""The objects in which Boskos keeps its resources, and the resources of `wire`.

Source: Boskos' definitions (`boskos.k8s.io/v1`): a `ResourceObject` for each resource, whose status
is no subresource, and a `DRLCObject` for each dynamic type of its configuration.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from moorage.wire.admission import Pool
from moorage.wire.pools.boskos import BoskosResource

API_VERSION = "boskos.k8s.io/v1"
RESOURCE, LIFE_CYCLE = "ResourceObject", "DRLCObject"

NEVER = datetime(1970, 1, 1, tzinfo=UTC)
"""The last update of a resource that has none, Boskos' zero time: its owner counts as silent."""


@dataclass(frozen=True, slots=True)
class Found:
    """What objects say: resources by type, dynamic types, and why objects are left out."""

    resources: dict[str, list[BoskosResource]] = field(default_factory=dict)
    dynamic: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)


def types_of(pools: Iterable[Pool]) -> list[str]:
    """Return the types of resources that a server has: its pools of a configuration of Boskos."""
    return [
        pool.name
        for pool in pools
        if pool.limit is None and pool.per_member is None and not pool.native_slots
    ]


def resources_in(objects: Iterable[Any]) -> Found:
    """Return the resources in objects, of which others may be among them."""
    found = Found()
    for one in objects:
        version, kind = _text(one, "apiVersion"), _text(one, "kind")
        name = _text(one, "metadata", "name")
        if version.partition("/")[0] != API_VERSION.partition("/")[0]:
            found.problems.append(f"{kind or 'an object'} {name}: not of the group boskos.k8s.io")
        elif kind == LIFE_CYCLE and name:
            found.dynamic.add(name)
        elif kind == RESOURCE:
            _add(found, name, one)
        elif kind == LIFE_CYCLE:
            found.problems.append(f"{LIFE_CYCLE}: it has no name")
        else:
            found.problems.append(
                f"{kind or 'an object'} {name}: neither {RESOURCE} nor {LIFE_CYCLE}"
            )
    return found


def object_of(kind: str, namespace: str | None, resource: BoskosResource) -> dict[str, Any]:
    """Return the object of a resource of the type `kind`."""
    metadata = {"name": resource.name} | ({} if namespace is None else {"namespace": namespace})
    status: dict[str, Any] = {
        "state": resource.state,
        "owner": resource.owner,
        "lastUpdate": _shown(resource.updated_at),
        "userData": dict(sorted(resource.user_data.items())),
    }
    if resource.expires_at is not None:
        status["expirationDate"] = _shown(resource.expires_at)
    return {
        "apiVersion": API_VERSION,
        "kind": RESOURCE,
        "metadata": metadata,
        "spec": {"type": kind},
        "status": status,
    }


def _add(found: Found, name: str, one: Mapping[str, Any]) -> None:
    kind = _text(one, "spec", "type")
    if not name or not kind:
        found.problems.append(f"{RESOURCE} {name}: it has no {'type' if name else 'name'}")
        return
    status = _inside(one, "status")
    try:
        resource = BoskosResource(
            name=name,
            state=_text(status, "state"),
            owner=_text(status, "owner"),
            user_data=_user_data(_inside(status, "userData")),
            updated_at=_time(status, "lastUpdate") or NEVER,
            expires_at=_time(status, "expirationDate"),
        )
    except ValueError as error:
        found.problems.append(f"{RESOURCE} {name}: {error}")
        return
    found.resources.setdefault(kind, []).append(resource)


def _inside(one: Any, *path: str) -> Any:
    for name in path:
        one = one.get(name) if isinstance(one, Mapping) else None
    return one


def _text(one: Any, *path: str) -> str:
    value = _inside(one, *path)
    return value if isinstance(value, str) else ""


def _user_data(value: Any) -> dict[str, str]:
    """Return user data. Raises ValueError."""
    if value is None or value == "":
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(one, str) for one in value.values()):
        raise ValueError("its userData is no object of texts")
    return dict(value)


def _time(status: Any, name: str) -> datetime | None:
    """Return a time; None: there is none. Raises ValueError."""
    text = _text(status, name)
    if text in ("", "null", "~"):
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"its {name} is no time: {text!r}") from None
    aware = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    return max(aware, NEVER) if aware.year > 1 else NEVER


def _shown(time: datetime) -> str:
    return time.astimezone(UTC).replace(microsecond=0).isoformat().replace("+00:00", "Z")
