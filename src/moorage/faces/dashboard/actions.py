"""What all actions of forms share: what they ask first, what the next page says, numbers."""

import re
from collections.abc import Mapping

from moorage.faces.dashboard.routing import address_of
from moorage.faces.native_api import RefusedError

NOTICES: Mapping[str, str] = {
    "released": "Released.",
    "revoked": "Revoked.",
    "owner-revoked": "Done. All of this owner's were ended; the audit log says how many.",
    "holder-gone": "Done. No late release is expected of its holder.",
    "ended-before": "Nothing was done: it had ended before.",
    "not-waiting": "Nothing was done: it no longer waits.",
    "first": "Moved to the front of the line.",
    "priority": "Its priority is changed.",
    "forced": "Granted.",
    "paused": "Paused: nothing is granted until somebody resumes it.",
    "resumed": "Resumed.",
    "drained": "Drained: nothing new is placed on this machine.",
    "in-service": "In service again.",
}
"""The line about an action that the next page shows, by the word in its address.

An address may come from anyone, so it cannot have the text.
"""

QUESTIONS: Mapping[str, str] = {
    "pause": "Pause it? Nothing is granted until it is resumed. Jobs with --best-effort start"
    " without a lease when their wait is over, unless they have --unless-paused.",
    "revoke": "Revoke it? Its units become free although its job may still run.",
    "revoke_owner": "End all of these tickets and leases of this owner? Units become free although"
    " jobs may still run.",
    "gone": "Is its job gone, without having released its slots? Then no late release is expected"
    " of it.",
    "force": "Grant this ticket at once, over the limit if necessary?",
}
"""What is asked before an action: by the script of a page, otherwise on a page of its own."""

SURE = "sure"
"""The field of a form whose question was answered with yes."""

WHOLE = re.compile(r"[+-]?[0-9]{1,9}")


def done(path: str, notice: str) -> str:
    """Return the address of the page to show after an action; `notice` is one of `NOTICES`."""
    NOTICES[notice]
    return address_of(path, {"notice": notice})


def whole(what: str, text: str) -> int:
    """Return the whole number in a field of a form. Raises RefusedError: 400."""
    if WHOLE.fullmatch(text.strip()) is None:
        raise RefusedError(400, "invalid", f"{what} must be a whole number.")
    return int(text)
