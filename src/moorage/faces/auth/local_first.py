"""Two schemes side by side: Moorage's own tokens, recognized by their prefix, and another's."""

from collections.abc import Mapping

from moorage.faces.auth.headers import token_of
from moorage.faces.web import Authenticator, Caller
from moorage.service.access.token import SECRET_PREFIX


class LocalFirst:
    """Keeps Moorage's own tokens working while the other scheme's server is unavailable."""

    def __init__(self, local: Authenticator, other: Authenticator) -> None:
        self._local = local
        self._other = other

    async def authenticate(self, headers: Mapping[str, str], client: str = "") -> Caller | None:
        """Authenticate with the scheme that the token belongs to. Raises what it raises."""
        token = token_of(headers)
        ours = token is not None and token.startswith(SECRET_PREFIX)
        return await (self._local if ours else self._other).authenticate(headers, client)
