"""Wishes: a node that wants to start work says so in its own fields.

`extra.moorage_want` of a node is an object such as `{"target": "active"}`: the body of the request
that is sent to Ironic once the node has its units. A wish is carried out once. Before its request
is sent, the record of the lease says which wish it is and when the node last changed its state; so
a process that continues after a crash, or beside another one, sees whether the work has begun.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from moorage.integrations.ironic.nodes import Node
from moorage.integrations.ironic.states import (
    DONE,
    EVENTS,
    VERBS_OF_STATE,
    Requirement,
    own_requirement_of,
)

WANT: Final = "moorage_want"
"""The member of `extra` that has the wish."""

MEMBERS: Final = frozenset(
    {
        "target",
        "configdrive",
        "clean_steps",
        "deploy_steps",
        "service_steps",
        "rescue_password",
        "disable_ramdisk",
        "runbook",
    }
)
"""The members that a request for a provision state may have."""

MARK: Final = "wish"
"""The member of a record that says for which wish the request is."""


class InvalidWishError(ValueError):
    """The wish of a node cannot be carried out; the message says what to change."""


@dataclass(frozen=True)
class Wish:
    """The wish of a node: `body` is sent to Ironic, `digest` tells it from other wishes."""

    verb: str
    body: Mapping[str, Any]
    digest: str


def wish_of(node: Node) -> Wish | None:
    """Return what a node wants; None: nothing. Raises InvalidWishError."""
    extra = node.get("extra")
    want = extra.get(WANT) if isinstance(extra, Mapping) else None
    if want is None:
        return None
    if not isinstance(want, Mapping):
        raise InvalidWishError(f"extra.{WANT} must be an object such as {{'target': 'active'}}.")
    verb = want.get("target")
    if not isinstance(verb, str) or verb not in EVENTS:
        raise InvalidWishError(f"extra.{WANT}: 'target' must be one of {', '.join(EVENTS)}.")
    if unknown := sorted(want.keys() - MEMBERS):
        raise InvalidWishError(f"extra.{WANT}: '{unknown[0]}' is not known.")
    spelled = json.dumps(want, sort_keys=True)
    return Wish(verb, dict(want), sha256(spelled.encode("utf-8", "surrogatepass")).hexdigest()[:16])


def valid_wish_of(node: Node) -> Wish | None:
    """Return what a node wants; None: nothing, or what cannot be carried out."""
    try:
        return wish_of(node)
    except InvalidWishError:
        return None


def mark_of(node: Node, whose: str) -> dict[str, Any]:
    """Return what the record says before a request is sent: `whose` is what it is sent for."""
    return {MARK: {"of": whose, "state_since": node.get("provision_updated_at")}}


def has_begun(record: Mapping[str, Any] | None, node: Node, whose: str) -> bool:
    """Return whether work has begun for what a record is marked with.

    That is so if Ironic has accepted the request, or the node has changed its state since.
    """
    mark = (record or {}).get(MARK)
    if record is None or not isinstance(mark, Mapping) or mark.get("of") != whose:
        return False
    return bool(record.get("begun")) or node.get("provision_updated_at") != mark.get("state_since")


def is_begun(record: Mapping[str, Any] | None, node: Node) -> bool:
    """Return whether work has begun for the wish that a node still has."""
    wish = valid_wish_of(node)
    return wish is not None and has_begun(record, node, wish.digest)


def is_needless(node: Node, verb: str) -> bool:
    """Return whether a node does what a verb asks for, or has done it."""
    state = str(node.get("provision_state"))
    return verb in VERBS_OF_STATE.get(state, ()) or DONE.get(verb) == state


def is_of_project(node: Node) -> bool:
    """Return whether members of a project may write to a node's `extra`.

    By Ironic's policies every member of the project that owns or leases a node may, also one that
    may not change its provision state. Otherwise only those may who manage the whole Ironic.
    """
    return bool(node.get("owner") or node.get("lessee"))


def hindrance_of(node: Node, verb: str) -> str | None:
    """Return why a request for a verb cannot be sent now, for people; None: it can."""
    state = str(node.get("provision_state"))
    if node.get("maintenance"):
        return "it is in maintenance"
    if holder := node.get("reservation"):
        return f"it is locked by {holder}"
    if own_requirement_of(verb, state) is Requirement.NOTHING:
        return f"'{verb}' is not possible while it is {state}"
    return None
