"""A hook: which leases concern it, and what it is sent about them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from moorage.integrations.webhooks.secret_values import Secret
from moorage.integrations.webhooks.signatures import signature
from moorage.integrations.webhooks.templates import (
    UnfilledError,
    filled,
    in_address,
    leaves,
    names_in,
)
from moorage.wire.admission import Lease
from moorage.wire.changes import LeaseValue

Event = Literal["granted", "ended"]

LeaseOf = Lease | LeaseValue
"""A lease or ticket, of a list or of the feed."""

LABEL = "notify"
"""The label by which a lease names the hook that it concerns."""

LEASE_NAMES = ("event", "id", "key", "owner", "pool", "cause", "detail")
"""What a template may name, besides `labels.NAME` and `secrets.NAME`."""


class Post(NamedTuple):
    """A request to the address of a hook."""

    id: str
    target: str
    """The path, with the query."""
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, kw_only=True)
class Hook:
    """An address, and what concerns it; see docs/howto/ci-webhooks.md."""

    name: str
    url: str
    events: frozenset[Event] = frozenset(("granted", "ended"))
    pools: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    attend: bool = False
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    secrets: Mapping[str, Secret] = field(default_factory=dict)
    signed_with: str | None = None
    ca_file: str | None = None

    @property
    def server(self) -> str:
        """The scheme, host and port of its address."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def is_addressed(self) -> bool:
        """Does a lease choose what in the receiver is asked, by what it fills in?"""
        named = names_in([self.url, self.body])
        return any(name != "event" and not name.startswith("secrets.") for name in named)

    def concerns(self, lease: LeaseOf) -> bool:
        """Return whether a lease concerns it."""
        if self.owners and not any(fnmatchcase(lease.owner, one) for one in self.owners):
            return False
        if not self.pools:
            return lease.labels.get(LABEL) == self.name
        return any(fnmatchcase(need.pool, one) for need in lease.needs for one in self.pools)

    def event(self, lease: LeaseOf) -> Event | None:
        """Return what it is to post about a lease; None: nothing."""
        state = lease.state
        if state == "waiting" or state not in self.events or not self.concerns(lease):
            return None
        return state

    def post(self, event: Event, lease: LeaseOf, now: int) -> Post:
        """Return what to send; `now` is the time in seconds since 1970.

        Raises UnfilledError, SecretError, ValueError (a secret for signatures is not valid).
        """
        at = lease.granted_at if event == "granted" else lease.ended_at
        # The same for each try, so that receivers know it again; a dot would end it when signed.
        post_id = f"{lease.id}_{event}_{0 if at is None else round(at.timestamp() * 1e6)}"
        values = _values(event, lease)

        def value(name: str) -> str:
            kind, _, rest = name.partition(".")
            if kind == "secrets":
                return self.secrets[rest]()
            if name not in values:
                raise UnfilledError(f"lease {lease.id} has no {name.replace('.', ' ', 1)}")
            return values[name]

        content = _news(event, at, lease) if self.body is None else filled(self.body, value)
        body = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
        address = urlsplit(filled(self.url, lambda name: in_address(name, value(name))))
        if leaves(address.path):
            # Not the path itself: it may have a secret.
            raise UnfilledError(f"lease {lease.id} would be posted to another place, by dots")
        headers = {
            "content-type": "application/json",
            "user-agent": "moorage",
            **{name: filled(text, value) for name, text in self.headers.items()},
            "webhook-id": post_id,
            "webhook-timestamp": str(now),
        }
        if self.signed_with is not None:
            secret = self.secrets[self.signed_with]()
            headers["webhook-signature"] = signature(secret, post_id, now, body)
        query = f"?{address.query}" if address.query else ""
        return Post(post_id, f"{address.path or '/'}{query}", headers, body)


def _values(event: Event, lease: LeaseOf) -> dict[str, str]:
    return {
        "event": event,
        "id": lease.id,
        "key": lease.key,
        "owner": lease.owner,
        "pool": next((need.pool for need in lease.needs), ""),
        "cause": str(lease.cause or ""),
        "detail": lease.detail,
        **{f"labels.{name}": text for name, text in lease.labels.items()},
    }


def _news(event: Event, at: datetime | None, lease: LeaseOf) -> dict[str, Any]:
    """Return what is sent unless the hook says otherwise."""
    return {
        "event": event,
        "at": None if at is None else at.isoformat(),
        "lease": {
            "id": lease.id,
            "key": lease.key,
            "owner": lease.owner,
            "needs": [{"pool": need.pool, "units": need.units} for need in lease.needs],
            "slots": lease.slots,
            "labels": lease.labels,
            "cause": lease.cause,
            "detail": lease.detail,
        },
    }
