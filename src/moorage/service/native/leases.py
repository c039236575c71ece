"""Leases in the native API: checks requests, and converts leases to their wire form."""

from typing import Any

import msgspec

from moorage.core.admission.forecast.why import Standing
from moorage.core.admission.model import Need
from moorage.core.errors import Code, Error
from moorage.core.ids import ConsumerId, ProviderId
from moorage.core.labels import check_labels
from moorage.core.ledger.vocabulary import check_consumer_type
from moorage.core.limits import MAX_INT
from moorage.core.texts import is_name
from moorage.core.wishes import labels_of, wanted_of
from moorage.service.admission.lease_requests import LeaseRequest
from moorage.service.admission.views import LeaseView
from moorage.service.batch.ledger_share import LeaseAllocations
from moorage.service.native.bounds import (
    microseconds,
    microseconds_or_none,
    name_of,
    uuid_of,
)
from moorage.service.native.encoding import seconds_of, time_of, time_or_none
from moorage.wire import admission as wire


def asked_of(wanted: wire.LeaseWanted, owner: str) -> LeaseRequest:
    """Convert an owner's request to the service's type. Raises `Error`: INVALID."""
    needs = [Need(need.pool, need.units, wanted=wanted_of(need.labels)) for need in wanted.needs]
    return LeaseRequest(
        owner=owner,
        key=wanted.key,
        needs=tuple(sorted(needs, key=lambda need: need.pool)),
        ttl=microseconds_or_none("ttl", wanted.ttl),
        hold=microseconds_or_none("hold", wanted.hold),
        priority=wanted.priority,
        labels=wanted.labels,
        patience=microseconds("patience", wanted.patience),
        force=wanted.force,
        pull=wanted.pull,
        reopen=wanted.reopen,
        allocations=None if wanted.allocations is None else _holding(wanted.allocations),
    )


def _holding(wanted: wire.AllocationsWanted) -> LeaseAllocations:
    for provider, amounts in wanted.allocations.items():
        for name, amount in amounts.items():
            if not is_name(name):
                raise Error(
                    Code.INVALID,
                    f"{name!r} in allocations of provider '{provider}' is not a resource class.",
                )
            if not 1 <= amount <= MAX_INT:
                raise Error(
                    Code.INVALID,
                    f"The amount of {name!r} of provider '{provider}' must be from 1 to {MAX_INT},"
                    f" not {amount}.",
                )
    if not wanted.allocations or not all(wanted.allocations.values()):
        raise Error(
            Code.INVALID, "allocations must name at least one provider, and an amount for each."
        )
    if wanted.consumer_type is not None:
        check_consumer_type(wanted.consumer_type)
    allocations = {
        ProviderId(uuid_of(provider, "A provider")): amounts
        for provider, amounts in wanted.allocations.items()
    }
    if len(allocations) != len(wanted.allocations):
        raise Error(Code.INVALID, "allocations name a provider twice, in upper and in lower case.")
    return LeaseAllocations(
        consumer=ConsumerId(uuid_of(wanted.consumer, "consumer")),
        allocations=allocations,
        project_id=name_of("project_id", wanted.project_id),
        user_id=name_of("user_id", wanted.user_id),
        consumer_type=wanted.consumer_type,
    )


def labels_parse(texts: list[str]) -> dict[str, str]:
    """Return the labels of texts NAME=VALUE; a name may stand once. Raises `Error`: INVALID."""
    labels: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals) or name in labels:
            raise Error(Code.INVALID, f"label must be NAME=VALUE, each name once, not {text!r}.")
        labels[name] = value
    check_labels(labels)
    return labels


def record_text(record: dict[str, Any]) -> str:
    """Return a record as it is stored: without blanks, equal records alike."""
    return msgspec.json.encode(record, order="deterministic").decode()


def shown(view: LeaseView, mine: bool) -> wire.Lease:
    """Convert a lease to its wire form.

    `mine`: include its token and its record (for its owner and operators only).
    """
    lease = view.lease
    return wire.Lease(
        id=lease.id,
        key=lease.key,
        owner=lease.owner,
        state=lease.state,
        needs=[_need_shown(need) for need in lease.needs],
        slots={pool: list(names) for pool, names in lease.slots.items()},
        labels=lease.labels,
        priority=lease.priority,
        forced=lease.forced,
        ttl=seconds_of(lease.ttl),
        hold=seconds_of(lease.hold),
        asked_at=time_of(view.asked_at),
        granted_at=time_or_none(view.granted_at),
        expires_at=time_or_none(view.expires_at),
        hold_until=time_or_none(view.hold_until),
        ended_at=time_or_none(view.ended_at),
        cause=lease.cause,
        detail=lease.detail,
        outcome=lease.outcome,
        unheard=view.unheard,
        token=str(lease.token) if mine and lease.token is not None else None,
        record=_record(lease.record) if mine else None,
        record_version=lease.record_version,
        record_age=seconds_of(view.record_age),
        waiting=None if view.standing is None else _standing_shown(view.standing),
    )


def _need_shown(need: Need) -> wire.NeedWanted:
    labels = dict(labels_of(need.wanted))
    return wire.NeedWanted(pool=need.pool, units=need.units, labels=labels)


def _record(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    record: dict[str, Any] = msgspec.json.decode(text)
    return record


def _standing_shown(standing: Standing) -> wire.Waiting:
    return wire.Waiting(
        position=standing.position,
        eta_seconds=standing.eta_seconds,
        overdue=standing.overdue,
        code=standing.code,
        reason=standing.reason,
    )
