"""Finds the token in a request's headers."""

from collections.abc import Mapping

_BEARER = "bearer "


def token_of(headers: Mapping[str, str]) -> str | None:
    """Return the token in `X-Auth-Token` or `Authorization: Bearer`; None if there is none."""
    token = headers.get("x-auth-token")
    if token is not None:
        return token
    authorization = headers.get("authorization", "")
    if authorization[: len(_BEARER)].lower() == _BEARER:
        return authorization[len(_BEARER) :].strip() or None
    return None
