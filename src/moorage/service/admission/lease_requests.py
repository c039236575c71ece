"""Requests for leases, and what an idempotency key stands for.

That is the digest of the request that first came with it.
"""

import hashlib
from typing import Any

import msgspec
from msgspec import structs

from moorage.core.admission.model import Need
from moorage.core.admission.requests import PATIENCE, Ask
from moorage.service.batch.ledger_share import LeaseAllocations, text_of
from moorage.service.ids import lease_id_new
from moorage.wire.labels import DESCRIBING


class LeaseRequest(msgspec.Struct, frozen=True):
    """A request for units. Times are microseconds; None: the defaults of the pools."""

    owner: str
    key: str
    needs: tuple[Need, ...]
    ttl: int | None = None
    hold: int | None = None
    priority: int = 0
    labels: dict[str, str] = {}
    patience: int = PATIENCE
    force: bool = False
    pull: bool = False
    reopen: bool = False
    allocations: LeaseAllocations | None = None
    attended: bool = False
    """It will be known whether its client is there, and reads the answer that tells of a grant."""


def ask_of(wanted: LeaseRequest, roles: frozenset[str]) -> Ask:
    """Return the request to the core, for a new lease; `roles`: whose rights the caller has."""
    digest, older_digest = digests_of(wanted)
    return Ask(
        id=lease_id_new(),
        owner=wanted.owner,
        key=wanted.key,
        digest=digest,
        older_digest=older_digest,
        needs=wanted.needs,
        priority=wanted.priority,
        ttl=wanted.ttl,
        hold=wanted.hold,
        patience=wanted.patience,
        labels=wanted.labels,
        forced=wanted.force,
        pull=wanted.pull,
        reopen=wanted.reopen,
        attended=wanted.attended,
        allocations=None if wanted.allocations is None else text_of(wanted.allocations),
        roles=roles,
    )


def digests_of(wanted: LeaseRequest) -> tuple[str, str | None]:
    """Return the digest of a request, and the one that older releases computed for it.

    The second one is None if it is the same.
    """
    # Without the key, so that a client can repeat a retry's request with the retry's new key.
    asked = msgspec.to_builtins(structs.replace(wanted, key=""), order="deterministic")
    del asked["reopen"]  # so that a lease can be asked for with and without it
    del asked["attended"]  # it is about the connection
    for need in asked["needs"]:
        if not need["wanted"]:
            del need["wanted"]  # as in digests that were stored before there were labels of slots
    if not wanted.pull:
        del asked["pull"]  # as in digests that were stored before there were pull tickets
    whole = _digest(asked)
    if DESCRIBING.isdisjoint(wanted.labels):
        return whole, None
    # Another process that continues an attempt has its own host, user and process id.
    labels = asked["labels"].items()
    asked["labels"] = {name: value for name, value in labels if name not in DESCRIBING}
    return _digest(asked), whole


def _digest(asked: dict[str, Any]) -> str:
    return hashlib.sha256(msgspec.json.encode(asked)).hexdigest()
