"""Forms: accepted only from own pages and of their session; what they ask, and what follows.

A form is accepted if the browser says that it came from this origin, and if it has the form token
of the session. The form token is derived from the session's secret, so nothing is stored.
"""

import hashlib
import hmac
import re
from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import parse_qsl, quote

from moorage.core.limits import FORM_BYTES_MAX
from moorage.faces.dashboard.headers import Reply, html
from moorage.faces.dashboard.rendering import FORM_TOKEN_PLACE, Templates
from moorage.faces.dashboard.routing import ROOT, address_of
from moorage.faces.web import Limits, Receive, RefusalError, Scope, body_read

TOKEN_FIELD = "form_token"
FIELDS_MAX = 100
SCHEMES = ("http", "https")
FORM = "application/x-www-form-urlencoded"
LAST_WORD = re.compile("[/:][^/:]*$")

NOTICES: Mapping[str, str] = {
    "released": "Released.",
    "offered": "Offered. You hold it until it is accepted.",
    "offer-withdrawn": "Nothing is offered any more.",
    "accepted": "Yours from now on. Somebody must renew it before its TTL ends, unless it is kept.",
    "declined": "Declined. The present holder keeps it.",
    "booked": "Booked.",
    "booking-changed": "Changed.",
    "booking-cancelled": "Cancelled. Its leases go on until they end.",
    "booking-differs": "Nothing was done: the booking was changed meanwhile. Look at it again.",
    "owner-revoked": "Done. All of this owner's were ended; the audit log says how many.",
    "holder-gone": "Done. No late release is expected of its holder.",
    "ended-before": "Nothing was done: it had ended before.",
    "claimed": "Claimed. This consumer holds it until somebody releases it.",
    "claimed-before": "Nothing was done: this was claimed before.",
    "no-room": "Nothing was claimed: it does not fit there any more.",
    "drained": "Drained: nothing new is placed there, and what is allocated stays.",
    "resumed": "Resumed: the drain is over.",
    "consumer-released": "Released by this reshape, which can be undone.",
    "reshape-undone": "Undone by this reshape.",
    "undone-before": "Nothing was done: it had been undone before.",
    "undo-differs": "Nothing was done: undoing it would now do something else. Look at it again.",
}
"""The line about an action that the next page shows, by the word in its address.

An address may come from anyone, so it cannot have the text.
"""

QUESTIONS: Mapping[str, str] = {
    "revoke_owner": "End all of these tickets and leases of this owner? Units become free although"
    " jobs may still run.",
    "gone": "Is its job gone, without having released its slots? Then no late release is expected"
    " of it.",
    "claim": "Claim this? A consumer will hold these units until somebody releases it.",
    "release_consumer": "Release all that this consumer holds? Whatever runs there keeps running,"
    " and its units become free.",
    "undo": "Undo this reshape? All that was shown happens at once.",
}
"""The question before an action: asked by the script of a page, otherwise on a page of its own."""

SURE = "sure"
"""The field of a form whose question was answered with yes."""


def form_token(secret: str) -> str:
    """Return the form token of the session with this secret."""
    return hmac.new(secret.encode(), b"moorage form", hashlib.sha256).hexdigest()


def check_origin(scheme: str, headers: Mapping[str, str]) -> None:
    """Refuse a form that another site has sent. Raises RefusalError: 403.

    Browsers send `Origin` with every POST. A page without TLS is another site for one with TLS, but
    not the other way round: a proxy that is not trusted may have removed the TLS.

    Args:
        scheme: of the connection, or of the client's if a trusted proxy says so.
        headers: of the request, by lower-case name.
    """
    origin, host = headers.get("origin", ""), headers.get("host", "")
    sent_by, _, sent_from = origin.partition("://")
    known = sent_by == scheme if scheme == "https" else sent_by in SCHEMES
    if not host or not known or sent_from.lower() != host.lower():
        raise RefusalError(
            HTTPStatus.FORBIDDEN,
            f"This form was sent from {origin or 'an unknown page'}, not from {scheme}://{host}. If"
            " a proxy is in between, let it keep the header Host.",
        )


async def form_read(headers: Mapping[str, str], receive: Receive, limits: Limits) -> dict[str, str]:
    """Read the fields of a form. Raises RefusalError: 400, 413, 415."""
    if headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
        raise RefusalError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"A form must be {FORM}.")
    most = min(limits.body_bytes_max, FORM_BYTES_MAX)
    setting = f"body_bytes_max, at most {FORM_BYTES_MAX} for a form"
    body = await body_read(headers, receive, most, setting)
    try:
        pairs = parse_qsl(
            body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=FIELDS_MAX
        )
    except ValueError:  # also if it is not UTF-8
        raise RefusalError(HTTPStatus.BAD_REQUEST, "The form cannot be decoded.") from None
    if any("\0" in value for _, value in pairs):
        raise RefusalError(HTTPStatus.BAD_REQUEST, "The form contains NUL.")
    return dict(pairs)


def check_token(form: Mapping[str, str], secret: str) -> None:
    """Refuse a form without the session's form token. Raises RefusalError: 403."""
    given = form.get(TOKEN_FIELD, "").encode()
    if not hmac.compare_digest(given, form_token(secret).encode()):
        raise RefusalError(
            HTTPStatus.FORBIDDEN, "This form belongs to another session: reload the page."
        )


def with_form_token(text: str, secret: str) -> str:
    """Put the form token of a session into a rendered page."""
    return text.replace(FORM_TOKEN_PLACE, form_token(secret))


def question(templates: Templates, asks: str, scope: Scope, form: Mapping[str, str]) -> Reply:
    """Ask before an action: what the script of a page has not asked, or nobody has."""
    text = templates.get("sure.html").render(
        title="Are you sure?",
        question=QUESTIONS[asks],
        action=_action_of(scope["path"]),
        fields={**form, SURE: "yes"},
        back=page_of(scope),
    )
    return html(text)


def _action_of(path: str) -> str:
    """Return the address of a form, which may end with `:WORD`; names may have any letters."""
    name, _, word = path.rpartition(":")
    if not word.isalpha():
        return quote(path, safe="/")
    return f"{quote(name, safe='/')}:{word}"


def page_of(scope: Scope) -> str:
    """Return the page of a submitted form: an action is one word below it. Empty: no form."""
    path = LAST_WORD.sub("", scope["path"])
    return quote(path) if scope["method"] == "POST" and path.startswith(ROOT) else ""


def done(path: str, notice: str) -> str:
    """Return the address of the page to show after an action; `notice` is one of `NOTICES`."""
    return noticed(path, {}, notice)


def noticed(path: str, query: Mapping[str, object], notice: str) -> str:
    """As `done`, of a page whose address has parameters."""
    NOTICES[notice]
    return address_of(path, {**query, "notice": notice})
