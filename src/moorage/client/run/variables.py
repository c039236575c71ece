"""The environment variables of the client, and a check for misspelled ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

PREFIX = "MOORAGE_"

UNLIMITED = f"{PREFIX}UNLIMITED_WITHOUT_SERVER"

READ = {
    "MOORAGE_URL": "the server, http://HOST:PORT",
    "MOORAGE_TOKEN": "the token to send to the server",
    "MOORAGE_TOKEN_FILE": "a file with the token, which is read again when it has changed",
    "MOORAGE_CONTEXT": "the context of `moorage login` to use, if MOORAGE_URL is not set",
    "MOORAGE_CERTIFICATE": "a PEM file; only a server with exactly this certificate is trusted",
    "MOORAGE_CA_FILE": "a PEM file with the certificate authorities to trust",
    UNLIMITED: "1 or yes: if no server is set, run without a lease and a limit, instead of failing",
    "MOORAGE_LABELS": "0 or no: send no labels of host, user, process, command and CI job",
}
"""The variables that are read, with their meanings."""

LEASE_PREFIX = "MOORAGE_LEASE_"

GIVEN = {
    "ID": "the lease",
    "TOKEN": "the fencing token, to send with every change made under the lease",
    "POOL": "the pools of the lease, separated by spaces; with `--any-of` those that were granted",
    "SLOTS": "the names of the slots of the lease, separated by spaces; empty if the pools have"
    " none",
    "SLOTS_CSV": "the names of the slots, separated by commas",
    "EXPIRES_AT": "when the lease would end without a renewal, as of its grant",
    "HOLD_UNTIL": "when the hold ends the lease; empty without a hold",
    "OUTER": "the leases of the outer runs, separated by spaces; empty if there are none",
}
"""The variables that a command with a lease gets, without their prefix, with their meanings."""

UI_SETTING = f"{PREFIX}UI"
"""A setting of the server; it resembles the name of another variable."""

CLOSE = 0.85
"""The least similarity (0 to 1) of a name to a known one for a hint."""


def nearly(environ: Mapping[str, str]) -> list[str]:
    """Return a line for each variable that resembles one of `READ` but is not one.

    Other names may be settings of the server, which this module does not know.
    """
    lines = []
    for name in sorted(environ):
        known = name in READ or name == UI_SETTING or name.startswith(LEASE_PREFIX)
        if name.startswith(PREFIX) and not known:
            from difflib import get_close_matches  # deferred: most environments have none

            near = get_close_matches(name, READ, 1, CLOSE)
            lines += [unknown(name, near)] if near else []
    return lines


def unknown(name: str, near: Iterable[str]) -> str:
    """Return a message that a variable is unknown, with the names that may be meant."""
    hint = "".join(f"; did you mean {one}?" for one in near)
    return f"{name} is not a variable that Moorage knows{hint or '; remove or rename it'}"
