"""Rows of the audit trail for decisions, which are pure: without ids, which the batch sets."""

from typing import Any

from msgspec import Struct, json

from moorage.core.clock import Instant
from moorage.store.access.audit import AuditRow


class Actor(Struct, frozen=True):
    """The author of an action: a name, the id of a token of Moorage if it presented one, a role."""

    who: str
    token_id: str | None
    role: str


def audit_entry(
    at: Instant, actor: Actor, action: str, target: str, before: Any = None, after: Any = None
) -> AuditRow:
    """Return the row for one action, for a decision: without an id, which the batch sets.

    Args:
        at: when.
        actor: who.
        action: the action, `noun.verb`.
        target: its object: an id, a path.
        before: the state before, any JSON-serializable value.
        after: the state after it, likewise.
    """
    return AuditRow(
        at,
        "",
        actor.who,
        actor.token_id,
        actor.role,
        action,
        target,
        _text(before),
        _text(after),
    )


def _text(value: Any) -> str | None:
    return None if value is None else json.encode(value).decode()
