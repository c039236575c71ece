"""Typed identifiers, one per kind, so that they cannot be mixed up."""

import re
from collections.abc import Iterable
from typing import NewType

ProviderId = NewType("ProviderId", str)
"""A resource provider's UUID: 36 characters, lower case, with dashes."""

ConsumerId = NewType("ConsumerId", str)
"""A consumer's UUID: 36 characters, lower case, with dashes."""

AggregateId = NewType("AggregateId", str)
"""An aggregate's UUID: 36 characters, lower case, with dashes."""

LeaseId = NewType("LeaseId", str)
BookingId = NewType("BookingId", str)
"""The UUID of a lease and of the ticket it comes from: 36 characters, lower case, with dashes."""

AgentId = NewType("AgentId", str)
"""The UUID of an agent, which speaks for one machine: 36 characters, lower case, with dashes."""

_NORMAL = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


_FIRST = "00000000-0000-0000-0000-000000000000"

PREFIX_LENGTH_MIN = 8
"""Characters of a prefix: those of leases begin with the time, so fewer stand for many leases."""


def is_prefix(text: str) -> bool:
    """Can an identifier begin with this text, and is it long enough to look for?"""
    return len(text) >= PREFIX_LENGTH_MIN and is_normal(text + _FIRST[len(text) :])


def is_normal(text: str) -> bool:
    """Is this a UUID in the one form that all identifiers have here?"""
    return _NORMAL.fullmatch(text) is not None


def meant_by(text: str, things: Iterable[tuple[str, str]]) -> list[str]:
    """Return the ids that a text means, of things with ids and names: its own, else by a name.

    If there are none, it is the beginning of those. A part of a name means nothing.
    """
    known, prefix = [*things], text.lower()
    own = [one for one, _ in known if one == text]
    named = own or [one for one, name in known if name == text]
    begun = named or [one for one, _ in known if is_prefix(prefix) and one.startswith(prefix)]
    return [*dict.fromkeys(begun)]
