"""Signs readers in and out, on their page, and recognizes them by their cookie.

`POST /ui/sign-in` exchanges a token, or the code of a one-time link, for a session. The token
itself is then forgotten: a cookie holds only the session's secret, and the session ends with the
token. The code comes in the fragment of an address, which browsers send to nobody.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from moorage.faces.addresses import address_of as ip_address_of
from moorage.faces.addresses import client_of, source_of
from moorage.faces.auth.token import caller_of
from moorage.faces.dashboard import forms
from moorage.faces.dashboard.headers import Headers, Reply, html, redirect
from moorage.faces.dashboard.rendering import Templates
from moorage.faces.dashboard.routing import ROOT, address_of
from moorage.faces.native_api import NativeApi
from moorage.faces.web import (
    Authenticator,
    Caller,
    Limits,
    Receive,
    RefusalError,
    Scope,
    query_parse,
)
from moorage.service.access.token import Token
from moorage.service.app import Service
from moorage.service.audit_entries import Actor
from moorage.wire.operations import pools

SIGN_IN = f"{ROOT}/sign-in"
SIGN_OUT = f"{ROOT}/sign-out"

LINK_GONE = "This link has been used, or is older than 2 minutes: make another one."

READ = pools.LIST_POOLS
"""Callers that may call this may sign in."""

PORT = re.compile(r":(\d{1,5})\Z")
SECRET = re.compile(r"[\w-]{1,64}", re.ASCII)
"""The form of a cookie's value; others are not ours."""


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

    async def link_owner(self, code: str) -> Token | None:
        """Return whom a one-time link signs in; None: nobody any more. Raises `Error`."""
        return await self._access.links.find(code) if SECRET.fullmatch(code) else None

    async def sign_in_by_link(self, code: str, client: str) -> str:
        """Use a one-time link; return the secret of a new session. Raises SignInError; `Error`."""
        secret = None
        if SECRET.fullmatch(code):
            secret = await self._access.links.redeem(code, source=_source(client))
        if secret is None:
            raise SignInError(LINK_GONE)
        return secret

    async def _open(self, caller: Caller, credential: Mapping[str, str], source: str) -> str:
        if caller.token_id is None:
            actor = Actor(caller.user_id, None, "")
            return await self._sessions.open_foreign(credential, actor=actor, source=source)
        token = await self._access.find(credential["x-auth-token"])
        if token is None:
            raise SignInError("This token is no longer valid.")
        secret = await self._sessions.open(token, source=source)
        assert secret is not None  # only a link can be gone
        return secret

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
    address = ip_address_of(client)
    return client if address is None else source_of(address)


class SignInPages:
    """The pages that sign in and out, and what readers get who are not signed in."""

    def __init__(self, readers: Readers, templates: Templates, limits: Limits) -> None:
        self._readers = readers
        self._templates = templates
        self._limits = limits

    async def sign_in(self, scope: Scope, headers: Mapping[str, str], receive: Receive) -> Reply:
        """Show the page, or sign in with its form."""
        query = dict(query_parse(scope["query_string"], self._limits))
        if scope["method"] != "POST":
            return self._page(query.get("next", ""), None)
        form = await forms.form_read(headers, receive, self._limits)
        following, link, client = form.get("next", ""), form.get("link"), client_of(scope)
        before = await self._readers.find(cookie_read(scope, headers), client, used=False)
        try:
            if link is not None and forms.SURE not in form:
                return await self._question(link, before)
            if link is not None:
                secret = await self._readers.sign_in_by_link(link, client)
            else:
                secret = await self._readers.sign_in(form.get("token", ""), client)
        except SignInError as error:
            return self._page(following, error)
        if before is not None:  # the browser forgets it, so nobody could end it
            await self._readers.sign_out(before)
        target = following if _is_own(following) else ROOT
        return redirect(target, cookie_set(scope, headers, secret))

    async def _question(self, link: str, before: Reader | None) -> Reply:
        """Say whom a link signs in, and ask: it may be somebody else's. The link is not used yet.

        So a program that opens links before a person does uses none, and nobody acts with
        another's rights without having seen the name. Raises SignInError; `Error`.
        """
        token = await self._readers.link_owner(link)
        if token is None:
            raise SignInError(LINK_GONE)
        text = self._templates.get("sign_in_link.html").render(
            title="Sign in",
            link=link,
            name=token.name,
            role=token.role.value,
            before=None if before is None else before.caller.user_id,
        )
        return html(text)

    def _page(self, following: str, error: SignInError | None) -> Reply:
        status: int = HTTPStatus.OK
        more: Headers = []
        if error is not None:
            status = HTTPStatus.TOO_MANY_REQUESTS if error.seconds else HTTPStatus.UNAUTHORIZED
            more = [(b"retry-after", str(error.seconds).encode())] if error.seconds else []
        text = self._templates.get("sign_in.html").render(
            title="Sign in", following=following, error=error
        )
        return html(text, *more, status=status)

    async def sign_out(
        self, scope: Scope, headers: Mapping[str, str], receive: Receive, reader: Reader
    ) -> Reply:
        """End the session, with the form that every page has."""
        form = await forms.form_read(headers, receive, self._limits)
        forms.check_token(form, reader.secret)
        await self._readers.sign_out(reader)
        return redirect(SIGN_IN, cookie_set(scope, headers, ""))

    def first(self, scope: Scope, headers: Mapping[str, str], method: str) -> Reply:
        """Send a reader who is not signed in to the sign-in page, which leads back to this one."""
        if method != "GET":
            raise RefusalError(HTTPStatus.UNAUTHORIZED, "Your session has ended: sign in again.")
        query = scope["query_string"].decode("latin-1")
        back = scope["raw_path"].decode("latin-1").removeprefix(scope.get("root_path", ""))
        back += f"?{query}" if query else ""
        if is_from_elsewhere(headers) and _is_own(back):
            # Browsers send no cookie with links of other sites, but with those of this page.
            text = self._templates.get("again.html").render(title="Moorage", address=back)
            return html(text, (b"refresh", f"0; url={back}".encode()))
        return redirect(address_of(SIGN_IN, {"next": "" if scope["path"] == ROOT else back}))


def _is_own(target: str) -> bool:
    """Return whether an address is a page of the dashboard: no other may be returned to."""
    plain = target.isascii() and target.isprintable() and "\\" not in target
    return plain and (target == ROOT or target.startswith((f"{ROOT}/", f"{ROOT}?")))


def cookie_name(scope: Scope, headers: Mapping[str, str]) -> str:
    """Return the name of the session's cookie.

    Browsers send cookies to every port of a host. So without TLS, where several servers may share
    one host, the name has the port that the browser sees: that of a proxy, if there is one.
    With a prefix, the cookie is for its paths only, because others may belong to other servers.
    """
    if scope["scheme"] == "https":
        return "__Secure-moorage" if scope.get("root_path") else "__Host-moorage"
    port = PORT.search(headers.get("host", ""))
    return f"moorage-{port[1]}" if port else "moorage"


def cookie_read(scope: Scope, headers: Mapping[str, str]) -> str | None:
    """Return the secret of the session in the request's cookie; None: it has none.

    `http.cookies` is not used: it takes seconds for some cookies, and drops all after an invalid
    one, which another server on this host may have set.
    """
    name, found = cookie_name(scope, headers), None
    # Several `cookie` headers were joined with a comma, which is in no secret.
    for part in headers.get("cookie", "").replace(",", ";").split(";"):
        given, _, value = part.strip().partition("=")
        if given == name and SECRET.fullmatch(value):
            found = value
    return found


def cookie_set(scope: Scope, headers: Mapping[str, str], secret: str) -> tuple[bytes, bytes]:
    """Return the header that sets the session's cookie, or deletes it if the secret is empty.

    The server decides when the session ends; the cookie itself ends with the browser.
    """
    path = scope.get("root_path") or "/"
    name = cookie_name(scope, headers)
    parts = [f"{name}={secret}", f"Path={path}", "HttpOnly", "SameSite=Strict"]
    if scope["scheme"] == "https":
        parts.append("Secure")
    if not secret:
        parts.append("Max-Age=0")
    return b"set-cookie", "; ".join(parts).encode()


def is_from_elsewhere(headers: Mapping[str, str]) -> bool:
    """Return whether a link of another site has led here.

    Without TLS, browsers say so only with the address of that site.
    """
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site == "cross-site"
    linked = headers.get("referer", "").partition("://")[2].partition("/")[0]
    return linked not in ("", headers.get("host", ""))
