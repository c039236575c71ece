"""Submitted forms: only from own pages of the dashboard, only of the session they were made for.

A form is accepted if the browser says that it came from this origin, and if it has the form token
of the session. The form token is derived from the session's secret, so nothing is stored.
"""

import hashlib
import hmac
from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import parse_qsl

from moorage.core.limits import FORM_BYTES_MAX
from moorage.faces.web import Limits, Receive, RefusalError, body_read

TOKEN_FIELD = "form_token"
FIELDS_MAX = 100
SCHEMES = ("http", "https")
FORM = "application/x-www-form-urlencoded"


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
