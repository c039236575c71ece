"""The entry point of the Placement API: all checks in the original's order, then the handler.

The order is token, microversion, content-length, address, method; then, by route: microversion,
content type or Accept, policy; all others are the handler's. A raw ASGI application, because of
this order and because this code runs for every request.
"""

import logging
from contextlib import closing
from functools import lru_cache, partial
from http import HTTPStatus

from moorage.core.errors import Error
from moorage.core.ledger.import_mark import refusal
from moorage.faces.addresses import client_of
from moorage.faces.auth.headers import token_of
from moorage.faces.long_answers import Body, long_send
from moorage.faces.placement import cors, microversion, negotiation, problems
from moorage.faces.placement.policy import USAGES, Profile, allows
from moorage.faces.placement.problems import problem_of
from moorage.faces.placement.request import NEVER, Request, Response, http_date
from moorage.faces.placement.routes import Route, address_split, routes, table_of
from moorage.faces.query_strings.refusals import ProblemError
from moorage.faces.web import (
    CALLER,
    REQUEST_ID,
    Authenticator,
    Caller,
    Limits,
    Receive,
    RefusalError,
    Scope,
    Send,
    answer_send,
    body_read,
    gone,
    headers_of,
    path_check,
    query_parse,
    request_id_new,
)
from moorage.service.app import Service
from moorage.service.searches import ClientGoneError

CACHE_HEADERS_SINCE = 15
OPEN_PATHS = ("", "/")
"""Paths that need no token."""

Headers = list[tuple[bytes, bytes]]

WRONG_TOKEN = "The token that was shown is not valid here."

log = logging.getLogger("moorage.placement")


class RequestState:
    """The state of one request so far, needed for any answer to it."""

    __slots__ = ("headers", "prefix", "request_id", "route", "scope", "variables", "version")

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.headers = headers_of(scope)
        self.request_id = request_id_new()
        self.prefix: str = scope.get("root_path", "")
        """The path that all addresses begin with; `path` of the scope has none of it."""
        self.version: int | None = None
        self.route: Route | None = None
        self.variables: tuple[str, ...] = ()

    def url(self, location: str) -> str:
        """Return the absolute form of a path of this API."""
        server = self.scope.get("server") or ("localhost", None)
        host = self.headers.get("host") or f"{server[0]}:{server[1]}"
        return f"{self.scope.get('scheme', 'http')}://{host}{self.prefix}{location}"


class PlacementFace:
    """The ASGI application.

    Args:
        service: the service behind the API.
        authenticator: identifies callers.
        policy: the policy profile in force.
        cors_origin: the web origin that may call from a browser; None: none may.
        limits: limits on the size of requests.
    """

    def __init__(
        self,
        service: Service,
        authenticator: Authenticator,
        *,
        policy: Profile = "default",
        cors_origin: str | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._service = service
        self._authenticator = authenticator
        self._limits = limits or Limits()
        self._usual = self._limits.body_bytes_max, "body_bytes_max"
        self._bulk = self._limits.bulk_bytes_max, "bulk_bytes_max"
        self._table = table_of(routes())
        self.configure(policy, cors_origin)

    def configure(self, policy: Profile, cors_origin: str | None) -> None:
        """Change the policy profile and the CORS origin for all requests from now on."""
        self._policy: Profile = policy
        self._cors_origin = cors_origin

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        state = RequestState(scope)
        origin = self._cors_origin
        body: Body
        if origin is not None and scope["method"] == "OPTIONS":
            status, headers, body = 200, cors.preflight(origin, state.headers), b""
        else:
            try:
                caller = None
                if scope["path"] not in OPEN_PATHS:
                    caller = await self._authenticator.authenticate(state.headers, client_of(scope))
                route, version = self._route(state, caller)
                sent = b""
                if route.content:
                    limit, setting = self._bulk if route.bulk else self._usual
                    sent = await body_read(state.headers, receive, limit, setting)
                request = Request(
                    service=self._service,
                    version=version,
                    path=state.variables,
                    query_string=scope["query_string"],
                    body=sent,
                    prefix=state.prefix,
                    limits=self._limits,
                    disconnected=partial(gone, receive),
                )
                status, headers, body = _answered(state, await route.handler(request))
            except ClientGoneError:
                return
            except Exception as error:
                status, headers, body = _refused(state, _problem(state, error))
            if origin is not None:
                headers.extend(cors.decoration(origin, state.headers))
        if isinstance(body, bytes):
            headers.append((b"content-length", str(len(body)).encode()))
            headers.append((REQUEST_ID, state.request_id.encode()))
            await answer_send(scope, send, status, headers, body)
            return
        headers.append((REQUEST_ID, state.request_id.encode()))
        start = {"type": "http.response.start", "status": status, "headers": headers}
        with closing(body):
            await long_send(start, body, scope, receive, send, self._service.turns.spared)

    def _route(self, state: RequestState, caller: Caller | None) -> tuple[Route, int]:
        """Return the route and the microversion, after all checks up to the body.

        Raises ProblemError, RefusalError: the first check that fails.
        """
        scope, headers = state.scope, state.headers
        path, method = scope["path"], scope["method"]
        if caller is not None:
            scope[CALLER] = caller
        elif path not in OPEN_PATHS:
            shown = token_of(headers)
            raise ProblemError(HTTPStatus.UNAUTHORIZED, WRONG_TOKEN if shown else "")
        version = state.version = microversion.negotiate(headers.get(microversion.HEADER, ""))
        _check_length(headers.get("content-length"), bool(headers.get("content-type")))
        key, variables = address_split(path or "/")
        by_method = self._table.get(key)
        if by_method is None or not all(variables):
            raise ProblemError(HTTPStatus.NOT_FOUND, "")
        path_check(path)
        state.variables = variables
        routes = by_method.get(method)
        if routes is None:
            raise _no_method(((b"allow", ", ".join(by_method).encode()),))
        if routes[0].content_first:
            _check_content_type(headers.get("content-type", ""))
        for route in routes:
            if route.since <= version <= route.until:
                break
        else:
            if routes[0].too_old == HTTPStatus.METHOD_NOT_ALLOWED:
                raise _no_method()
            raise ProblemError(HTTPStatus.NOT_FOUND, "")
        if route.content and not route.content_first:
            _check_content_type(headers.get("content-type", ""))
        if route.accept and not negotiation.accepts_json(headers.get("accept", "")):
            raise ProblemError(HTTPStatus.NOT_ACCEPTABLE, "Only application/json is provided")
        state.route = route
        if route.rule and caller is not None:
            project = self._project(scope) if route.rule == USAGES else None
            if not allows(self._policy, route.rule, caller, project):
                raise ProblemError(
                    HTTPStatus.FORBIDDEN,
                    f"Policy does not allow placement:{route.rule} to be performed.",
                )
        if self._service.imports.shown is not None and path not in OPEN_PATHS:
            raise refusal()
        return route, version

    def _project(self, scope: Scope) -> str | None:
        """Return the project that a query names. Raises RefusalError: the query is invalid."""
        return dict(query_parse(scope["query_string"], self._limits)).get("project_id")


def _problem(state: RequestState, error: Exception) -> ProblemError:
    """Translate any exception into an error response."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, RefusalError):
        return ProblemError(error.status, error.message)
    if isinstance(error, Error):
        exceptions = state.route.exceptions if state.route else {}
        return problem_of(error, exceptions, state.variables)
    log.error("%s: a fault in this service", state.request_id, exc_info=error)
    return ProblemError(
        HTTPStatus.INTERNAL_SERVER_ERROR, "The log tells more under the request id."
    )


@lru_cache(maxsize=256)
def _check_length(length: str | None, has_type: bool) -> None:
    if not length:
        return
    try:
        has_body = int(length) > 0
    except ValueError:
        raise ProblemError(400, "content-length header must be an integer") from None
    if has_body and not has_type:
        raise ProblemError(400, "content-type header required when content-length > 0")


def _no_method(headers: tuple[tuple[bytes, bytes], ...] = ()) -> ProblemError:
    return ProblemError(
        HTTPStatus.METHOD_NOT_ALLOWED,
        "The method specified is not allowed for this resource." if headers else "",
        headers=headers,
    )


@lru_cache(maxsize=64)
def _check_content_type(header: str) -> None:
    kind = header.partition(";")[0].strip()
    if kind.lower() != negotiation.JSON:
        raise ProblemError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            f"The media type {kind or None} is not supported, use {negotiation.JSON}",
        )


@lru_cache(maxsize=64)
def _version_headers(version: int | None) -> tuple[tuple[bytes, bytes], ...]:
    if version is None:
        return ()
    return (
        (microversion.HEADER.encode(), f"{microversion.SERVICE} 1.{version}".encode()),
        (b"vary", microversion.HEADER.encode()),
    )


def _answered(state: RequestState, answer: Response) -> tuple[int, Headers, Body]:
    headers = [*_version_headers(state.version)]
    if answer.body is not None:
        headers.append((b"content-type", b"application/json"))
    if answer.location is not None:
        headers.append((b"location", state.url(answer.location).encode("latin-1", "replace")))
    if answer.modified is not None and (state.version or 0) >= CACHE_HEADERS_SINCE:
        if answer.modified != NEVER:
            headers.append((b"last-modified", http_date(answer.modified).encode()))
        headers.append((b"cache-control", b"no-cache"))
    return answer.status, headers, answer.body or b""


def _refused(state: RequestState, problem: ProblemError) -> tuple[int, Headers, bytes]:
    problem.subject = _subject(state, problem.status)
    kind = negotiation.error_type(state.headers.get("accept", ""))
    if kind == negotiation.HTML:
        body = problems.body_html(problem)
    elif kind == negotiation.TEXT:
        body = problems.body_text(problem)
    elif problem.status == HTTPStatus.UNAUTHORIZED:
        body = problems.body_unauthorized(problem, state.request_id)
    else:
        body = problems.body_json(problem, state.request_id, state.version)
    shown = kind if kind == negotiation.JSON else f"{kind}; charset=UTF-8"
    headers = [*_version_headers(state.version), *problem.headers]
    headers.append((b"content-type", shown.encode()))
    return problem.status, headers, body


def _subject(state: RequestState, status: int) -> str:
    """Return the part of the request that the status refers to."""
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        return str(state.scope["method"])
    if status == HTTPStatus.NOT_ACCEPTABLE:
        return negotiation.accept_shown(state.headers.get("accept", ""))
    if status == HTTPStatus.UNSUPPORTED_MEDIA_TYPE:
        return state.headers.get("content-type") or "None"
    return ""
