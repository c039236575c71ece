"""Signs readers in and out, and recognizes them by their cookie.

`POST /ui/sign-in` exchanges a token for a session. The token itself is then forgotten: a cookie
holds only the session's secret, and the session ends with the token.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from moorage.faces.addresses import address_of, source_of
from moorage.faces.auth.token import caller_of
from moorage.faces.native_api import NativeApi
from moorage.faces.web import Authenticator, Caller
from moorage.service.access.audit import Actor
from moorage.service.app import Service
from moorage.wire.operations import pools

READ = pools.LIST_POOLS
"""Callers that may call this may sign in."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Somebody who is signed in."""

    secret: str
    caller: Caller


class SignInError(Exception):
    """Signing in failed. `seconds` is how long to wait before the next try; 0: not at all."""

    def __init__(self, message: str, seconds: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.seconds = seconds


class Readers:
    """The sessions of the dashboard."""

    def __init__(self, service: Service, authenticator: Authenticator, api: NativeApi) -> None:
        self._access = service.access
        self._sessions = service.access.sessions
        self._authenticator = authenticator
        self._api = api

    async def sign_in(self, token: str, client: str) -> str:
        """Return the secret of a new session. Raises SignInError; `Error`: UNAVAILABLE.

        The token is checked first: failures of others at the same address lock nobody out. The API
        checks tokens at every request, too, so this is no slower way to guess one.
        """
        source = _source(client)
        attempts = self._sessions.attempts
        credential = {"x-auth-token": token.strip()}
        caller = None
        if credential["x-auth-token"]:
            caller = await self._authenticator.authenticate(credential, client)
        if caller is None:
            wait = attempts.wait(source)
            if wait > 0:
                raise SignInError("Too many attempts have failed.", math.ceil(wait))
            attempts.note(source)
            raise SignInError("This token is not valid.")
        if caller.scope is not None or not self._api.permits(caller, READ):
            raise SignInError("This token may not see pages: use one of the role reader or higher.")
        wait = self._sessions.openings.wait(caller.identity)
        if wait > 0:
            raise SignInError("This token has signed in too often.", math.ceil(wait))
        self._sessions.openings.note(caller.identity)
        return await self._open(caller, credential, source)

    async def _open(self, caller: Caller, credential: Mapping[str, str], source: str) -> str:
        if caller.token_id is None:
            actor = Actor(caller.user_id, None, "")
            return await self._sessions.open_foreign(credential, actor=actor, source=source)
        token = await self._access.find(credential["x-auth-token"])
        if token is None:
            raise SignInError("This token is no longer valid.")
        return await self._sessions.open(token, source=source)

    async def sign_out(self, reader: Reader) -> None:
        """End a session. Raises `Error`: UNAVAILABLE."""
        actor = Actor(reader.caller.user_id, reader.caller.token_id, "")
        await self._sessions.close(reader.secret, actor=actor)

    async def find(self, secret: str | None, client: str, *, used: bool = True) -> Reader | None:
        """Return who is signed in; None: nobody. Raises `Error`: UNAVAILABLE.

        `used`: whether this counts as a use of the session, so that it does not end as idle.
        """
        session = await self._sessions.find(secret, used=used) if secret else None
        if session is None or secret is None:
            return None
        if session.token is not None:
            caller: Caller | None = caller_of(session.token)
        else:
            caller = await self._authenticator.authenticate(session.credential, client)
        return None if caller is None else Reader(secret, caller)


def _source(client: str) -> str:
    address = address_of(client)
    return client if address is None else source_of(address)
