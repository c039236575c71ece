"""What reshape plans are in JSON: converts what requests say, and encodes what they do.

Plans and effects have thousands of members, so all of this belongs into a thread.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import singledispatch
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, to_builtins

from moorage.core.errors import Code, Error
from moorage.core.ids import AggregateId, ConsumerId, ProviderId
from moorage.core.ledger.reshape_records import ReshapeRecord
from moorage.core.ledger.reshaping import effects as kinds
from moorage.core.ledger.reshaping.effects import Effect, Summary
from moorage.core.ledger.reshaping.plan import (
    Figures,
    Generations,
    Move,
    NewProvider,
    Place,
    Policy,
    ReshapePlan,
)
from moorage.core.ledger.reshaping.planning import Planned
from moorage.core.ledger.reshaping.size import check_size
from moorage.core.ledger.reshaping.violations import Violation
from moorage.core.limits import RESHAPE_ENTRIES_MAX, RESHAPE_NUMBER_MAX
from moorage.service.ledger.reshapes import Committed, Preview
from moorage.service.values import time_of, uuid_of
from moorage.wire import reshapes as wire

A = TypeVar("A")
K = TypeVar("K", ProviderId, ConsumerId)
V = TypeVar("V")

LEVELS = 3
"""How deep the values of an effect are: amounts by provider and class."""

ALL = "all"
"""The amount of a move that takes what is left."""


def plan_of(wanted: wire.ReshapePlan, entries_max: int = RESHAPE_ENTRIES_MAX) -> ReshapePlan:
    """Convert a plan with at most `entries_max` entries.

    Raises `Error`: INVALID for what is no UUID or named twice, and for absurd numbers and names;
    LIMIT_EXCEEDED for too many entries.
    """
    plan = ReshapePlan(
        create=tuple(
            NewProvider(_provider(one.uuid), one.name, _parent(one.parent)) for one in wanted.create
        ),
        parents=_keyed(wanted.parents, _provider, _parent),
        rename=_keyed(wanted.rename, _provider, str),
        moves=tuple(map(_move, wanted.moves)),
        inventories=_keyed(wanted.inventories, _provider, _inventories),
        traits=_keyed(wanted.traits, _provider, frozenset[str]),
        aggregates=_keyed(wanted.aggregates, _provider, _aggregates),
        drain=_keyed(wanted.drain, _provider, str),
        delete=frozenset(map(_provider, wanted.delete)),
        stay=frozenset(map(_consumer, wanted.stay)),
        release=frozenset(map(_consumer, wanted.release)),
        vacate=_keyed(wanted.vacate, _consumer, _providers),
        accept_drift=frozenset(map(_consumer, wanted.accept_drift)),
        fungible=frozenset(wanted.fungible),
        expect=Generations(
            _keyed(wanted.expect.providers, _provider, _number),
            _keyed(wanted.expect.consumers, _consumer, _perhaps),
        ),
        cross_tree=wanted.cross_tree,
    )
    check_size(plan, entries_max)
    return plan


def _keyed(given: Mapping[str, A], key: Callable[[str], K], value: Callable[[A], V]) -> dict[K, V]:
    """Convert an object whose members are UUIDs. Raises `Error`: INVALID."""
    found = {key(name): value(one) for name, one in given.items()}
    if len(found) < len(given):
        raise Error(Code.INVALID, "A plan names a UUID twice, in upper and in lower case.")
    return found


def _inventories(
    classes: Mapping[str, wire.ReshapeFigures | None],
) -> dict[str, Figures | None]:
    return {name: _figures(one) for name, one in classes.items()}


def _aggregates(uuids: Sequence[str]) -> frozenset[AggregateId]:
    return frozenset(AggregateId(uuid_of(one, "An aggregate")) for one in uuids)


def _providers(uuids: Sequence[str]) -> frozenset[ProviderId]:
    return frozenset(map(_provider, uuids))


def _provider(text: str) -> ProviderId:
    return ProviderId(uuid_of(text, "A provider"))


def left_out(uuids: Sequence[str]) -> frozenset[ConsumerId]:
    """Convert the consumers that an undo leaves out. Raises `Error`: INVALID, LIMIT_EXCEEDED."""
    if len(uuids) > RESHAPE_ENTRIES_MAX:
        raise Error(
            Code.LIMIT_EXCEEDED, f"At most {RESHAPE_ENTRIES_MAX} consumers can be left out."
        )
    return frozenset(map(_consumer, uuids))


def _consumer(text: str) -> ConsumerId:
    return ConsumerId(uuid_of(text, "A consumer"))


def _parent(text: str | None) -> ProviderId | None:
    return None if text is None else _provider(text)


def _number(value: int) -> int:
    if abs(value) > RESHAPE_NUMBER_MAX:
        raise Error(Code.INVALID, f"Numbers of a plan are at most {RESHAPE_NUMBER_MAX}.")
    return value


def _perhaps(value: int | None) -> int | None:
    return None if value is None else _number(value)


def _move(wanted: wire.ReshapeMove) -> Move:
    return Move(
        source=Place(_provider(wanted.from_.provider), wanted.from_.class_),
        target=Place(_provider(wanted.to.provider), wanted.to.class_),
        amount=None if wanted.amount == ALL else _number(int(wanted.amount)),
        assign=_keyed(wanted.assign, _consumer, _assigned),
        policy=Policy(wanted.policy),
    )


def _assigned(amounts: Mapping[str, int]) -> dict[ProviderId, int]:
    return _keyed(amounts, _provider, _number)


def _figures(wanted: wire.ReshapeFigures | None) -> Figures | None:
    if wanted is None:
        return None
    return Figures(
        total=_perhaps(wanted.total),
        reserved=_perhaps(wanted.reserved),
        min_unit=_perhaps(wanted.min_unit),
        max_unit=_perhaps(wanted.max_unit),
        step_size=_perhaps(wanted.step_size),
        allocation_ratio=wanted.allocation_ratio,
    )


def preview_text(preview: Preview) -> Raw:
    """Encode a preview."""
    return _encoded(_planned(preview.planned, preview.revision))


def planned_text(planned: Planned) -> Raw:
    """Encode the plan of a refusal, which was made in a transaction: it has no revision."""
    return _encoded(_planned(planned, None))


def violations_text(violations: Sequence[Violation]) -> Raw:
    """Encode why a plan cannot be committed."""
    return _encoded([*map(_violation, violations)])


def committed_text(done: Committed) -> Raw:
    """Encode a committed reshape."""
    return _encoded(
        {
            **to_builtins(entry_of(done.record)),
            "at": time_of(done.record.at),
            "effects": [*map(_effect, done.effects)],
            "summary": _summary(done.summary),
            "generations": to_builtins(done.generations),
        }
    )


def undone_text(done: Committed | None, preview: Preview | None) -> Raw:
    """Encode what has undone a reshape, or the plan of that."""
    return _encoded(
        {
            "reshape": None if done is None else committed_text(done),
            "plan": None if preview is None else preview_text(preview),
        }
    )


def differences_text(seen: Sequence[wire.ReshapeEffect], planned: Planned) -> Raw:
    """Encode which of the effects that somebody has seen are gone, and which are new."""
    before = {_key(one): one for one in map(_seen, seen)}
    after = {_key(one): one for one in map(_effect, planned.effects)}
    return _encoded(
        {
            "gone": [one for key, one in before.items() if key not in after],
            "new": [one for key, one in after.items() if key not in before],
        }
    )


def entry_of(record: ReshapeRecord) -> wire.ReshapeEntry:
    """Convert a record."""
    return wire.ReshapeEntry(
        id=record.id,
        at=time_of(record.at),
        who=record.who,
        role=record.role,
        reason=record.reason,
        digest=record.digest,
        providers=record.providers,
        consumers=record.consumers,
        undoes=record.undoes,
        undone_by=record.undone_by,
    )


def _encoded(value: Any) -> Raw:
    return Raw(msgspec.json.encode(value))


def _planned(planned: Planned, revision: str | None) -> dict[str, Any]:
    return {
        "digest": planned.digest,
        "effects": [*map(_effect, planned.effects)],
        "summary": _summary(planned.summary),
        "violations": [*map(_violation, planned.violations)],
        "generations": to_builtins(planned.generations),
        "revision": revision,
        "notes": to_builtins(planned.notes),
    }


def _violation(one: Violation) -> dict[str, Any]:
    return {
        "code": one.code,
        "message": one.message,
        "provider": one.provider,
        "class": one.resource_class,
        "consumer": one.consumer,
        "amount": one.amount,
    }


def _summary(summary: Summary) -> dict[str, Any]:
    return {
        "providers": to_builtins(summary.providers),
        "places": [
            {
                "provider": one.provider,
                "class": one.resource_class,
                "before": to_builtins(one.before),
                "after": to_builtins(one.after),
            }
            for one in summary.places
        ],
        "consumers": [
            {
                "consumer": one.consumer,
                "provider": one.provider,
                "class": one.resource_class,
                "amount": one.amount,
            }
            for one in summary.consumers
        ],
    }


def _effect(one: Effect) -> dict[str, Any]:
    provider, resource_class, consumer, before, after = _members(one)
    return {
        "kind": one.__struct_config__.tag,
        "provider": provider,
        "class": resource_class,
        "consumer": consumer,
        "before": before,
        "after": after,
    }


Members = tuple[str | None, str | None, str | None, Any, Any]
"""The provider, class and consumer of an effect; what was before, and what is after it."""


@singledispatch
def _members(one: Any) -> Members:
    return one.provider, None, None, one.before, one.after


@_members.register
def _(one: kinds.ProviderCreated) -> Members:
    return one.provider, None, None, None, {"name": one.name, "parent": one.parent}


@_members.register
def _(one: kinds.ProviderDeleted) -> Members:
    return one.provider, None, None, {"name": one.name, "parent": one.parent}, None


@_members.register
def _(one: kinds.InventorySet) -> Members:
    before, after = to_builtins(one.before), to_builtins(one.after)
    return one.provider, one.resource_class, None, before, after


@_members.register
def _(one: kinds.AllocationsSet) -> Members:
    return None, None, one.consumer, one.before, one.after


def _seen(one: wire.ReshapeEffect) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "provider": one.provider,
        "class": one.class_,
        "consumer": one.consumer,
        "before": one.before,
        "after": one.after,
    }


def _key(effect: Mapping[str, Any]) -> bytes:
    """Return a text that equal effects share; 1.0 is equal to 1, as some programs write it."""
    plain = {name: _whole(one) for name, one in effect.items()}
    return msgspec.json.encode(plain, order="sorted")


def _whole(value: Any, levels: int = LEVELS) -> Any:
    """Return a value of an effect; what is deeper than any effect stays as it was sent."""
    if isinstance(value, dict) and levels:
        return {name: _whole(one, levels - 1) for name, one in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value
