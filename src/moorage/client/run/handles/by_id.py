"""`moorage lease release ID`: a lease that is not in a file."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from moorage.client.run.api_types import Lease
from moorage.client.run.lease.api import Leases
from moorage.client.run.parse import UsageError, duration_of
from moorage.client.run.printing import print_result
from moorage.client.run.progress import Progress

BEGINNING = re.compile(r"[0-9a-f]{8}(-[0-9a-f-]{0,26})?")
"""The beginning of an id; a whole one is longer."""

NAMED_MAX = 5
"""Leases that are named if several ids begin so."""

BY_HOLDER = ("released", "withdrawn", "gave_up")
"""Causes of an end by this release or an earlier one."""


def release_by_id(
    words: Mapping[str, Any], leases: Leases | None, delay: float | None, notices: Progress
) -> int:
    """Release the lease with an id, or withdraw the ticket; return the exit code.

    With `delay` (seconds) the server ends it then, if it does not end earlier. Raises UsageError,
    and the errors of `Leases`.
    """
    lease_id = words["lease_id"]
    if words["handle"]:
        raise UsageError("pass either the id of a lease, or its file with --handle")
    if os.path.exists(lease_id):
        raise UsageError(f"{lease_id} is a file: pass it with --handle")
    if leases is None:
        notices.say("no server is set (MOORAGE_URL, --url): dry run, nothing is released")
        return 0
    if not lease_id:
        notices.say("no lease: there is nothing to release")
        return 0
    lease_id = _whole(lease_id, leases)
    if delay is not None:
        lease = leases.end_within(lease_id, None, delay)
        print_result(f"{lease.id} ends at {lease.ends_at}", lease._asdict(), words)
        return 0
    lease = leases.release(lease_id, None, duration_of(words, "release_timeout", 5.0))
    if lease.cause not in BY_HOLDER:
        notices.say(over(lease))
    print_result(f"{lease.id} has ended: {lease.cause}", lease._asdict(), words)
    return 0


def _whole(text: str, leases: Leases) -> str:
    """Return the id of the only lease that begins so.

    Ended ones count, too: the one that is meant may just have ended. Other texts are returned as
    they are, for the server to judge. Raises UsageError: several begin so.
    """
    if not BEGINNING.fullmatch(text.lower()):
        return text
    found = leases.with_prefix(text.lower(), NAMED_MAX + 1)
    if len(found) > 1:
        names = ", ".join(
            f"{one.id} (ended)" if one.state == "ended" else one.id for one in found[:NAMED_MAX]
        )
        more = ", and others" if len(found) > NAMED_MAX else ""
        raise UsageError(f"several ids begin with '{text}': {names}{more}; write more characters")
    return found[0].id if found else text


def over(lease: Lease) -> str:
    """Return the sentence that a lease had ended, and why."""
    return f"lease {lease.id} had ended before: {lease.end}"
