"""Labels with a meaning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

HOLDER = "holder"
"""The label of a lease that tells people for whom or for what it is held."""

GOVERNOR = "governor:"
"""The prefix of the owners of leases of governors: nobody else can have such a name."""

NODE = "node"
"""The label of a lease for a node of Ironic: its UUID."""

JOB, HOST, USER = "job", "host", "user"
"""Labels that name the holder if there is no label `holder`."""

DESCRIBING = frozenset({HOST, USER, "pid", "command", JOB, "build"})
"""Labels by which a client says where a request comes from, see `client.run.labels`.

They are no part of the request that an idempotency key stands for: the same attempt, continued by
another process, has others.
"""

SHOWN_MAX = 60
"""The characters of a label that are shown in a name, unless a governor has set it."""


def says(text: str, name: str, labels: Mapping[str, str]) -> bool:
    """Return whether a case-folded text is in a name, or in a label written as NAME=VALUE."""
    if text in name.casefold():
        return True
    return any(text in f"{label}={value}".casefold() for label, value in labels.items())


class Naming(NamedTuple):
    """What a holder is named by; an empty member is no part of the name. Equal ones are one holder.

    It is cheap to make for each of many leases: the name is composed for those that are shown.
    """

    owner: str
    holder: str = ""
    job: str = ""
    user: str = ""
    host: str = ""


def naming_of(
    owner: str, holder: str | None, job: str | None, user: str | None, host: str | None
) -> Naming:
    """Return what a lease's holder is named by: its owner, and those labels that are shown.

    Anybody can give a lease any label. Only the label `holder` of a governor replaces the owner;
    labels of others are shown with it, so that nobody passes as a host or as somebody else.
    """
    if holder:
        if holder == owner:
            return Naming(owner)
        return Naming("" if owner.startswith(GOVERNOR) else owner, holder)
    if job:
        return Naming(owner, "", job, "", host or "")
    return Naming(owner, "", "", user if user and user != owner else "", host or "")


def name_of(naming: Naming) -> str:
    """Return a holder's name for people: `job 4711 on runner-7 (ci)`."""
    owner, holder, job, user, host = naming
    if not owner:
        return holder
    who = _shortened(holder) or (f"job {_shortened(job)}" if job else _shortened(user))
    if host:
        who = f"{who} on {_shortened(host)}" if who else _shortened(host)
    return f"{who} ({owner})" if who else owner


def holder_of(owner: str, labels: Mapping[str, str | None]) -> str:
    """Return the name of a lease's holder for people.

    It is the label `holder`, or else made of the labels `job` or `user`, and `host`, or else the
    owner; see `naming_of`.
    """
    get = labels.get
    return name_of(naming_of(owner, get(HOLDER), get(JOB), get(USER), get(HOST)))


def _shortened(value: str) -> str:
    return value if len(value) <= SHOWN_MAX else f"{value[: SHOWN_MAX - 3]}..."
