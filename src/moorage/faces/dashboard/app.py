"""The entry point of the dashboard: files, signing in, pages, their streams, forms, data.

A raw ASGI application. Every answer has the headers of `headers.py`; every form is checked as in
`forms.py`. Pages come from the native API, on behalf of the reader (`faces/native_api.py`).
"""

import logging
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from moorage.core.clock import SECOND
from moorage.core.errors import Code, Error
from moorage.faces.addresses import client_of
from moorage.faces.dashboard import forms
from moorage.faces.dashboard import headers as head
from moorage.faces.dashboard.actions import NOTICES, QUESTIONS, SURE
from moorage.faces.dashboard.assets import assets
from moorage.faces.dashboard.assets import tag as assets_tag
from moorage.faces.dashboard.live import EVENTS, Live, View
from moorage.faces.dashboard.navigation import navigation
from moorage.faces.dashboard.outward import events_outward, headers_outward, page_outward
from moorage.faces.dashboard.recent_answers import RecentAnswers
from moorage.faces.dashboard.rendering import (
    FORM_TOKEN_PLACE,
    FRAGMENT,
    WHOLE,
    Templates,
    rendered,
)
from moorage.faces.dashboard.routes import ENTRIES
from moorage.faces.dashboard.routing import (
    ROOT,
    Action,
    Answer,
    Data,
    MethodError,
    Page,
    PageRequest,
    address_of,
    check_method,
    pairs_of,
)
from moorage.faces.dashboard.signing_in import Reader, Readers, SignInError
from moorage.faces.native_api import NativeApi, RefusedError
from moorage.faces.path_table import Match, Table
from moorage.faces.streaming import Stream, stream_send
from moorage.faces.web import (
    CALLER,
    Authenticator,
    Limits,
    Receive,
    RefusalError,
    Scope,
    Send,
    headers_of,
    leaving,
    path_check,
    query_parse,
    request_id_new,
)
from moorage.service.app import Service
from moorage.service.fair_turns import Pieces

SIGN_IN = f"{ROOT}/sign-in"
SIGN_OUT = f"{ROOT}/sign-out"
STATIC = f"{ROOT}/static/"
HTML = "text/html; charset=utf-8"
HTML_HEADER = (b"content-type", HTML.encode())
LAST_WORD = re.compile("[/:][^/:]*$")
FOR_EVER = (b"cache-control", b"public, max-age=31536000, immutable")

log = logging.getLogger("moorage.ui")


class DashboardFace:
    """The ASGI application.

    Args:
        service: whose state is shown.
        authenticator: checks tokens when a reader signs in.
        api: answers everything that pages show.
        limits: limits on the size of requests.
    """

    def __init__(
        self, service: Service, authenticator: Authenticator, api: NativeApi, limits: Limits
    ) -> None:
        self._service = service
        self._api = api
        self._limits = limits
        self._readers = Readers(service, authenticator, api)
        self._live = Live(service)
        self._answers = RecentAnswers()
        self._table: Table[Page | Action | Data] = Table(ENTRIES)
        self._templates = Templates()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request_id = (b"x-openstack-request-id", request_id_new().encode())
        try:
            answer = await self._answer(scope, receive)
        except Exception as error:
            answer = self._failed(scope, error, request_id[1].decode())
        prefix = scope.get("root_path", "")
        if isinstance(answer, Stream):
            await stream_send(
                replace(answer, pieces=events_outward(answer.pieces, prefix)),
                [*head.SAFE, head.NO_STORE, request_id],
                scope,
                send,
                leaving(scope, receive),
            )
            return
        status, headers, body = answer
        if prefix:
            headers = headers_outward(headers, prefix)
            if HTML_HEADER in headers:
                body = page_outward(body.decode(), prefix).encode()
        headers = head.with_length([*headers, request_id], body)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        if scope["method"] == "HEAD":
            body = b""
        await send({"type": "http.response.body", "body": body})

    async def _answer(
        self, scope: Scope, receive: Receive
    ) -> Stream | tuple[int, head.Headers, bytes]:
        path = scope["path"]
        path_check(path)
        headers = headers_of(scope)
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        if path.startswith(STATIC):
            check_method(method, ("GET",))
            return _static(path.removeprefix(STATIC), headers)
        await self._templates.compiled()
        if method == "POST":
            forms.check_origin(scope["scheme"], headers)
        if path == SIGN_IN:
            check_method(method, ("GET", "POST"))
            return await self._sign_in(scope, headers, receive, method)
        reader = await self._readers.find(head.cookie_read(scope, headers), client_of(scope))
        match = self._table.match(path.rstrip("/") or ROOT)
        if reader is None:
            if EVENTS in headers.get("accept", ""):
                return Stream(EVENTS, self._live.signed_out())  # a redirect would end the source
            return self._anonymous(scope, headers, path, method)
        scope[CALLER] = reader.caller
        if path == SIGN_OUT:
            check_method(method, ("POST",))
            return await self._sign_out(scope, headers, receive, reader)
        entry = self._entry(match, path, method)
        assert match is not None
        request = self._request(scope, reader, path, match.variables)
        if isinstance(entry, Data):
            return _data(await entry.read(request), headers)
        if isinstance(entry, Action):
            form = await forms.form_read(headers, receive, self._limits)
            forms.check_token(form, reader.secret)
            if entry.asks and SURE not in form:
                return self._question(entry, scope, form)
            return _redirect(await entry.act(replace(request, form=form)))
        if entry.live and scope["method"] == "GET" and EVENTS in headers.get("accept", ""):
            return self._stream(scope, entry, request, reader)
        return await self._page(entry, request, reader)

    def _entry(
        self, match: Match[Page | Action | Data] | None, path: str, method: str
    ) -> Page | Action | Data:
        if match is None:
            raise RefusalError(HTTPStatus.NOT_FOUND, f"There is no page at {path}.")
        check_method(method, match.by_method)
        return match.by_method[method]

    def _request(
        self, scope: Scope, reader: Reader, path: str, variables: dict[str, str]
    ) -> PageRequest:
        pairs = pairs_of(scope["query_string"], self._limits)
        return PageRequest(
            service=self._service,
            api=self._api,
            caller=reader.caller,
            path=path,
            variables=variables,
            pairs=pairs,
            query=dict(pairs),
            now=self._now(),
            answers=self._answers,
        )

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._service.clock.now() / SECOND, UTC)

    # Pages

    async def _page(
        self, page: Page, request: PageRequest, reader: Reader
    ) -> tuple[int, head.Headers, bytes]:
        text = await self._text(page, request, WHOLE)
        return HTTPStatus.OK, head.head(HTML), _with_form_token(text, reader).encode()

    async def _text(self, page: Page, request: PageRequest, layout: str) -> str:
        """Return the rendered page. Raises RefusedError."""
        if not request.permits(page.needs):
            raise RefusedError(
                HTTPStatus.FORBIDDEN, "forbidden", "This page needs a token with more rights."
            )
        shown = await page.show(request)
        common = {**self._common(request, page.title), "live": page.live, "layout": layout}
        work = rendered(self._templates.get(page.template), {**common, **shown})
        turns = self._service.turns
        # Nobody waits for an open page: it takes what turns are left.
        return await (Pieces(turns).driven(work) if request.streamed else turns.driven(work))

    def _common(self, request: PageRequest, title: str) -> dict[str, Any]:
        return {
            "title": title,
            "now": request.now,
            "request": request,
            "navigation": navigation(request),
            "reader": request.caller.user_id,
            "live": False,
            "questions": QUESTIONS,
            "notice": NOTICES.get(request.query.get("notice", ""), ""),
        }

    def _stream(self, scope: Scope, page: Page, request: PageRequest, reader: Reader) -> Stream:
        client = client_of(scope)

        async def render() -> str:
            current = self._request(scope, reader, request.path, dict(request.variables))
            return await self._text(page, replace(current, streamed=True), FRAGMENT)

        async def signed_in() -> bool:
            return await self._readers.find(reader.secret, client, used=False) is not None

        query = tuple(sorted(request.pairs))
        view = View(request.path, query, request.reader_key)
        pieces = self._live.events(reader.caller.identity, view, render, signed_in)
        return Stream(EVENTS, _with_form_tokens(pieces, reader))

    # Forms

    def _question(
        self, action: Action, scope: Scope, form: Mapping[str, str]
    ) -> tuple[int, head.Headers, bytes]:
        """Ask before an action: what the script of a page has not asked, or nobody has."""
        text = self._templates.get("sure.html").render(
            title="Are you sure?",
            question=QUESTIONS[action.asks],
            action=_action_of(scope["path"]),
            fields={**form, SURE: "yes"},
            back=_back(scope),
        )
        return HTTPStatus.OK, head.head(HTML), text.encode()

    async def _sign_in(
        self, scope: Scope, headers: dict[str, str], receive: Receive, method: str
    ) -> tuple[int, head.Headers, bytes]:
        form: Mapping[str, str] = {}
        following = dict(query_parse(scope["query_string"], self._limits)).get("next", "")
        if method == "POST":
            form = await forms.form_read(headers, receive, self._limits)
            following = form.get("next", "")
            try:
                secret = await self._readers.sign_in(form.get("token", ""), client_of(scope))
            except SignInError as error:
                return self._sign_in_page(following, error)
            cookie = head.cookie_read(scope, headers)
            before = await self._readers.find(cookie, client_of(scope), used=False)
            if before is not None:  # the browser forgets it, so nobody could end it
                await self._readers.sign_out(before)
            target = following if _is_own(following) else ROOT
            status, more, body = _redirect(target)
            return status, [*more, head.cookie_set(scope, headers, secret)], body
        return self._sign_in_page(following, None)

    def _sign_in_page(
        self, following: str, error: SignInError | None
    ) -> tuple[int, head.Headers, bytes]:
        status: int = HTTPStatus.OK
        more: list[tuple[bytes, bytes]] = []
        if error is not None:
            status = HTTPStatus.TOO_MANY_REQUESTS if error.seconds else HTTPStatus.UNAUTHORIZED
            more = [(b"retry-after", str(error.seconds).encode())] if error.seconds else []
        text = self._templates.get("sign_in.html").render(
            title="Sign in", following=following, error=error
        )
        return status, head.head(HTML, *more), text.encode()

    async def _sign_out(
        self, scope: Scope, headers: dict[str, str], receive: Receive, reader: Reader
    ) -> tuple[int, head.Headers, bytes]:
        form = await forms.form_read(headers, receive, self._limits)
        forms.check_token(form, reader.secret)
        await self._readers.sign_out(reader)
        status, more, body = _redirect(SIGN_IN)
        return status, [*more, head.cookie_set(scope, headers, "")], body

    def _anonymous(
        self, scope: Scope, headers: Mapping[str, str], path: str, method: str
    ) -> tuple[int, head.Headers, bytes]:
        """Send a reader who is not signed in to the sign-in page, which leads back to this one."""
        if method != "GET":
            raise RefusalError(HTTPStatus.UNAUTHORIZED, "Your session has ended: sign in again.")
        query = scope["query_string"].decode("latin-1")
        back = scope["raw_path"].decode("latin-1").removeprefix(scope.get("root_path", ""))
        back += f"?{query}" if query else ""
        if head.is_from_elsewhere(headers) and _is_own(back):
            # Browsers send no cookie with links of other sites, but with those of this page.
            text = self._templates.get("again.html").render(title="Moorage", address=back)
            again = (b"refresh", f"0; url={back}".encode())
            return HTTPStatus.OK, head.head(HTML, again), text.encode()
        return _redirect(address_of(SIGN_IN, {"next": "" if path == ROOT else back}))

    # Errors

    def _failed(
        self, scope: Scope, error: Exception, request_id: str
    ) -> tuple[int, head.Headers, bytes]:
        if isinstance(error, RefusalError | RefusedError):
            status, message = error.status, error.message
        elif isinstance(error, Error) and error.code in (Code.UNAVAILABLE, Code.OVERLOADED):
            status, message = int(HTTPStatus.SERVICE_UNAVAILABLE), error.message
        else:
            log.error("%s %s %s failed", request_id, scope["method"], scope["path"], exc_info=error)
            status = int(HTTPStatus.INTERNAL_SERVER_ERROR)
            message = f"The server failed; its log has the reason under {request_id}."
        more = [(b"allow", error.allowed.encode())] if isinstance(error, MethodError) else []
        text = self._templates.get("error.html").render(
            title=HTTPStatus(status).phrase, status=status, message=message, back=_back(scope)
        )
        return status, head.head(HTML, *more), text.encode()


def _static(name: str, headers: Mapping[str, str]) -> tuple[int, head.Headers, bytes]:
    tag, _, name = name.partition("/")
    asset = assets().get(name)
    if asset is None:
        raise RefusalError(HTTPStatus.NOT_FOUND, f"There is no file {name}.")
    kept = FOR_EVER if tag == assets_tag() else head.NO_STORE
    more = [(b"content-type", asset.media_type.encode()), kept, *head.SAFE]
    more.append((b"vary", b"accept-encoding"))
    if "gzip" in headers.get("accept-encoding", ""):
        return HTTPStatus.OK, [*more, (b"content-encoding", b"gzip")], asset.compressed
    return HTTPStatus.OK, more, asset.plain


def _data(answer: Answer, headers: Mapping[str, str]) -> tuple[int, head.Headers, bytes]:
    more: list[tuple[bytes, bytes]] = []
    if answer.filename is not None:
        more.append((b"content-disposition", f'attachment; filename="{answer.filename}"'.encode()))
    body = answer.body
    if answer.compressed is not None and "gzip" in headers.get("accept-encoding", ""):
        body = answer.compressed
        more.append((b"content-encoding", b"gzip"))
    return HTTPStatus.OK, head.head(answer.media_type, *more), body


def _redirect(target: str) -> tuple[int, head.Headers, bytes]:
    location = (b"location", target.encode("ascii", "strict"))
    return HTTPStatus.SEE_OTHER, [location, head.NO_STORE, *head.SAFE], b""


def _back(scope: Scope) -> str:
    """Return the page whose form was refused: an action is one word below it. Empty: no form."""
    path = LAST_WORD.sub("", scope["path"])
    return quote(path) if scope["method"] == "POST" and path.startswith(ROOT) else ""


def _is_own(target: str) -> bool:
    """Return whether an address is a page of the dashboard: no other may be returned to."""
    plain = target.isascii() and target.isprintable() and "\\" not in target
    return plain and (target == ROOT or target.startswith((f"{ROOT}/", f"{ROOT}?")))


def _with_form_token(text: str, reader: Reader) -> str:
    return text.replace(FORM_TOKEN_PLACE, forms.form_token(reader.secret))


async def _with_form_tokens(
    pieces: AsyncGenerator[bytes, None], reader: Reader
) -> AsyncGenerator[bytes, None]:
    place, token = FORM_TOKEN_PLACE.encode(), forms.form_token(reader.secret).encode()
    async with aclosing(pieces):
        async for piece in pieces:
            yield piece.replace(place, token)


def _action_of(path: str) -> str:
    """Return the address of a form, which may end with `:WORD`; names may have any letters."""
    name, _, word = path.rpartition(":")
    if not word.isalpha():
        return quote(path, safe="/")
    return f"{quote(name, safe='/')}:{word}"
