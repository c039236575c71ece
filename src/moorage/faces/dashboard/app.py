"""The entry point of the dashboard: finds who answers a request, and shows what has failed.

A raw ASGI application. Every answer has the headers of `headers.py`. Pages come from the native
API, on behalf of the reader (`faces/native_api.py`).
"""

import logging
from dataclasses import replace
from functools import partial
from http import HTTPStatus

from moorage.core.errors import Code, Error
from moorage.faces.addresses import client_of
from moorage.faces.dashboard import forms
from moorage.faces.dashboard.headers import (
    HTML_HEADER,
    NO_STORE,
    SAFE,
    Reply,
    data,
    html,
    redirect,
    with_length,
)
from moorage.faces.dashboard.live import EVENTS
from moorage.faces.dashboard.outward import events_outward, headers_outward, page_outward
from moorage.faces.dashboard.page_answers import PageAnswers
from moorage.faces.dashboard.rendering import Templates
from moorage.faces.dashboard.routes import ENTRIES
from moorage.faces.dashboard.routing import (
    ROOT,
    Action,
    Data,
    Entry,
    MethodError,
    Trial,
    check_method,
)
from moorage.faces.dashboard.signing_in import (
    SIGN_IN,
    SIGN_OUT,
    Readers,
    SignInPages,
    cookie_read,
)
from moorage.faces.dashboard.static_files import STATIC, static_file
from moorage.faces.dashboard.trials import trial_page
from moorage.faces.native_api import NativeApi, RefusedError
from moorage.faces.path_table import Table
from moorage.faces.streaming import Stream, stream_send
from moorage.faces.web import (
    CALLER,
    REQUEST_ID,
    Authenticator,
    Limits,
    Receive,
    RefusalError,
    Scope,
    Send,
    headers_of,
    left,
    path_check,
    request_id_new,
)
from moorage.service.app import Service

READER = "moorage.reader"
"""In a scope: the `Reader` who is signed in; absent if nobody is."""

PASSING = frozenset({Code.UNAVAILABLE, Code.OVERLOADED, Code.IMPORTING})
"""The refusals that end by themselves."""

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
        self._limits = limits
        self._table: Table[Entry] = Table(ENTRIES)
        self._templates = Templates()
        self._readers = Readers(service, authenticator, api)
        self._signing_in = SignInPages(self._readers, self._templates, limits)
        self._pages = PageAnswers(service, api, limits, self._readers, self._templates)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request_id = (REQUEST_ID, request_id_new().encode())
        try:
            answer = await self._answer(scope, receive)
        except Exception as error:
            answer = self._failed(scope, error, request_id[1].decode())
        prefix = scope.get("root_path", "")
        if isinstance(answer, Stream):
            await stream_send(
                replace(answer, pieces=events_outward(answer.pieces, prefix)),
                [*SAFE, NO_STORE, request_id],
                scope,
                send,
                partial(left, scope, receive),
            )
            return
        status, headers, body = answer
        if prefix:
            headers = headers_outward(headers, prefix)
            if HTML_HEADER in headers:
                body = page_outward(body.decode(), prefix).encode()
        headers = with_length([*headers, request_id], body)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        if scope["method"] == "HEAD":
            body = b""
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, scope: Scope, receive: Receive) -> Stream | Reply:
        path = scope["path"]
        path_check(path)
        headers = headers_of(scope)
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        if path.startswith(STATIC):
            check_method(method, ("GET",))
            return static_file(path, headers)
        await self._templates.compiled()
        if method == "POST":
            forms.check_origin(scope["scheme"], headers)
        if path == SIGN_IN:
            check_method(method, ("GET", "POST"))
            return await self._signing_in.sign_in(scope, headers, receive)
        reader = await self._readers.find(cookie_read(scope, headers), client_of(scope))
        wants_events = EVENTS in headers.get("accept", "")
        if reader is None:
            if wants_events:
                return self._pages.signed_out()
            return self._signing_in.first(scope, headers, method)
        scope[CALLER], scope[READER] = reader.caller, reader
        if path == SIGN_OUT:
            check_method(method, ("POST",))
            return await self._signing_in.sign_out(scope, headers, receive, reader)
        match = self._table.match(path.rstrip("/") or ROOT)
        if match is None:
            raise RefusalError(HTTPStatus.NOT_FOUND, f"There is no page at {path}.")
        check_method(method, match.by_method)
        entry = match.by_method[method]
        request = self._pages.request(scope, reader, path, match.variables)
        if isinstance(entry, Data):
            return data(await entry.read(request), headers)
        if isinstance(entry, Action):
            form = await forms.form_read(headers, receive, self._limits)
            forms.check_token(form, reader.secret)
            if entry.asks and forms.SURE not in form:
                return forms.question(self._templates, entry.asks, scope, form)
            return redirect(await entry.act(replace(request, form=form)))
        if isinstance(entry, Trial):
            form = await forms.form_read(headers, receive, self._limits)
            forms.check_token(form, reader.secret)
            request = replace(request, form=form)
            return await self._pages.page(trial_page(entry), request, reader)
        if entry.live and scope["method"] == "GET" and wants_events:
            return self._pages.stream(scope, entry, request, reader)
        return await self._pages.page(entry, request, reader)

    def _failed(self, scope: Scope, error: Exception, request_id: str) -> Reply:
        if isinstance(error, RefusalError | RefusedError):
            status, message = error.status, error.message
        elif isinstance(error, Error) and error.code in PASSING:
            status, message = int(HTTPStatus.SERVICE_UNAVAILABLE), error.message
        else:
            log.error("%s %s %s failed", request_id, scope["method"], scope["path"], exc_info=error)
            status = int(HTTPStatus.INTERNAL_SERVER_ERROR)
            message = f"The server failed; its log has the reason under {request_id}."
        more = [(b"allow", error.allowed.encode())] if isinstance(error, MethodError) else []
        shown = {
            "title": HTTPStatus(status).phrase,
            "status": status,
            "message": message,
            "back": forms.page_of(scope),
        }
        return html(self._pages.error(scope, scope.get(READER), shown), *more, status=status)
