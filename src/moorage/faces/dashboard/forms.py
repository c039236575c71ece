"""Submitted forms: only from own pages of the dashboard, only of the session they were made for.

A form is accepted if the browser says that it came from this origin, and if it has the form token
of the session. The form token is derived from the session's secret, so nothing is stored.
"""

import hashlib
import hmac
from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import parse_qsl, urlsplit

from moorage.faces.web import RefusalError

TOKEN_FIELD = "form_token"
FIELDS_MAX = 100
FORM = "application/x-www-form-urlencoded"


def form_token(secret: str) -> str:
    """Return the form token of the session with this secret."""
    return hmac.new(secret.encode(), b"moorage form", hashlib.sha256).hexdigest()


def check_origin(headers: Mapping[str, str]) -> None:
    """Refuse a form that another site has sent. Raises RefusalError: 403.

    Browsers send `Origin` with every POST. Only host and port are compared, because a proxy may
    have removed the TLS.
    """
    origin, host = headers.get("origin", ""), headers.get("host", "")
    if not host or urlsplit(origin).netloc.lower() != host.lower():
        raise RefusalError(
            HTTPStatus.FORBIDDEN,
            f"This form was sent from {origin or 'an unknown page'}, not from {host}. If a proxy is"
            " in between, let it keep the header Host.",
        )


def form_decode(headers: Mapping[str, str], body: bytes) -> dict[str, str]:
    """Decode the fields of a form. Raises RefusalError: 400, 415."""
    if headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
        raise RefusalError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"A form must be {FORM}.")
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
