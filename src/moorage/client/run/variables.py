"""The environment variables of what runs on other machines, and what comes close to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

PREFIX = "MOORAGE_"

READ = {
    "MOORAGE_URL": "the server, http://HOST:PORT",
    "MOORAGE_TOKEN": "the token to ask it with",
    "MOORAGE_REQUIRE": "1 or yes: fail if no server is named, instead of running without a lease",
}
"""Variables that are read, and what they mean."""

LEASE_PREFIX = "MOORAGE_LEASE_"

GIVEN = {
    "ID": "the lease",
    "TOKEN": "its fencing token, to be shown to whatever is changed under the lease",
    "POOL": "its pools, with blanks between them",
    "SLOTS": "the names of its slots, with blanks; empty if the pools have none",
    "SLOTS_CSV": "the same with commas",
    "EXPIRES_AT": "when it would have ended, as it was granted; it is renewed",
    "HOLD_UNTIL": "when its hold ends it; empty without one",
    "OUTER": "the leases of the runs around this one, with blanks; empty if there are none",
}
"""Variables that a command with a lease is given, without their prefix, and what they mean."""

CLOSE = 0.85
"""How alike a name must be to one of few that it may be meant for."""


def nearly(environ: Mapping[str, str]) -> list[str]:
    """Return a line for each variable that resembles one of `READ` but is not one.

    Other names may be settings of the server, which this module does not know.
    """
    lines = []
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in READ and not name.startswith(LEASE_PREFIX):
            near = get_close_matches(name, READ, 1, CLOSE)
            lines += [unknown(name, near)] if near else []
    return lines


def unknown(name: str, near: Iterable[str]) -> str:
    """Return a line that says that a variable is unknown, and which one may be meant."""
    hint = "".join(f"; did you mean {one}?" for one in near)
    return f"{name} is not a variable that Moorage knows{hint or '; remove or rename it'}"
