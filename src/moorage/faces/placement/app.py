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
from moorage.faces.addresses import client_of
from moorage.faces.auth.headers import token_of
from moorage.faces.long_answers import Body, long_send
from moorage.faces.placement import cors, microversion, negotiation, problems
from moorage.faces.placement.policy import USAGES, Profile, allows
from moorage.faces.placement.problems import problem_of
from moorage.faces.placement.request import NEVER, Request, Response, http_date
from moorage.faces.placement.routes import Match, Route, Table, routes
from moorage.faces.query_strings.refusals import ProblemError
from moorage.faces.web import (
    CALLER,
    Authenticator,
    Caller,
    Limits,
    Receive,
    RefusalError,
    Scope,
    Send,
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
        self.version: int | None = None
        self.route: Route | None = None
        self.variables: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The path below the prefix of all addresses."""
        path: str = self.scope["path"]
        return path

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
        self._table = Table(routes())
        self.configure(policy, cors_origin)

    def configure(self, policy: Profile, cors_origin: str | None) -> None:
        """Change the policy profile and the CORS origin for all requests from now on."""
        self._policy: Profile = policy
        self._cors_origin = cors_origin

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        exchange = RequestState(scope)
        try:
            status, headers, body = await self._outcome(exchange, receive)
        except ClientGoneError:
            return
        if isinstance(body, bytes):
            headers.append((b"content-length", str(len(body)).encode()))
        headers.append((b"x-openstack-request-id", exchange.request_id.encode()))
        start = {"type": "http.response.start", "status": status, "headers": headers}
        if isinstance(body, bytes):
            await send(start)
            await send({"type": "http.response.body", "body": body})
            return
        with closing(body):
            await long_send(start, body, scope, receive, send, self._service.turns.spared)

    async def _outcome(self, exchange: RequestState, receive: Receive) -> tuple[int, Headers, Body]:
        if self._cors_origin is not None and exchange.scope["method"] == "OPTIONS":
            return 200, cors.preflight(self._cors_origin, exchange.headers), b""
        try:
            status, headers, body = _answered(exchange, await self._answer(exchange, receive))
        except ClientGoneError:
            raise
        except Exception as error:
            status, headers, body = _refused(exchange, _problem(exchange, error))
        if self._cors_origin is not None:
            headers.extend(cors.decoration(self._cors_origin, exchange.headers))
        return status, headers, body

    async def _answer(self, exchange: RequestState, receive: Receive) -> Response:
        caller = None
        if exchange.path not in OPEN_PATHS:
            caller = await self._authenticator.authenticate(
                exchange.headers, client_of(exchange.scope)
            )
            if caller is None:
                shown = token_of(exchange.headers)
                raise ProblemError(HTTPStatus.UNAUTHORIZED, WRONG_TOKEN if shown else "")
            exchange.scope[CALLER] = caller
        version = microversion.negotiate(exchange.headers.get(microversion.HEADER, ""))
        exchange.version = version
        _check_length(exchange.headers)
        match = self._table.match(exchange.path)
        if match is None:
            raise ProblemError(HTTPStatus.NOT_FOUND, "")
        path_check(exchange.scope["path"])
        exchange.variables = match.path
        route = exchange.route = _route(exchange, match, version)
        self._check_policy(route, caller, exchange)
        body = b""
        if route.content:
            body = await self._body(route, exchange, receive)

        return await route.handler(
            Request(
                service=self._service,
                version=version,
                path=match.path,
                query_string=exchange.scope["query_string"],
                body=body,
                prefix=exchange.prefix,
                limits=self._limits,
                disconnected=partial(gone, receive),
            )
        )

    async def _body(self, route: Route, exchange: RequestState, receive: Receive) -> bytes:
        if route.bulk:
            limit, setting = self._limits.bulk_bytes_max, "bulk_bytes_max"
        else:
            limit, setting = self._limits.body_bytes_max, "body_bytes_max"
        return await body_read(exchange.headers, receive, limit, setting)

    def _check_policy(self, route: Route, caller: Caller | None, exchange: RequestState) -> None:
        if not route.rule or caller is None:
            return
        project = None
        if route.rule == USAGES:
            pairs = query_parse(exchange.scope["query_string"], self._limits)
            project = dict(pairs).get("project_id")
        if not allows(self._policy, route.rule, caller, project):
            raise ProblemError(
                HTTPStatus.FORBIDDEN,
                f"Policy does not allow placement:{route.rule} to be performed.",
            )


def _problem(exchange: RequestState, error: Exception) -> ProblemError:
    """Translate any exception into an error response."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, RefusalError):
        return ProblemError(error.status, error.message)
    if isinstance(error, Error):
        exceptions = exchange.route.exceptions if exchange.route else {}
        return problem_of(error, exceptions, exchange.variables)
    log.error("%s: a fault in this service", exchange.request_id, exc_info=error)
    return ProblemError(
        HTTPStatus.INTERNAL_SERVER_ERROR, "The log tells more under the request id."
    )


def _check_length(headers: dict[str, str]) -> None:
    length = headers.get("content-length")
    if not length:
        return
    try:
        has_body = int(length) > 0
    except ValueError:
        raise ProblemError(400, "content-length header must be an integer") from None
    if has_body and not headers.get("content-type"):
        raise ProblemError(400, "content-type header required when content-length > 0")


def _route(exchange: RequestState, match: Match, version: int) -> Route:
    """Return the route of a method at a version, after checking content type and Accept."""
    method = exchange.scope["method"]
    candidates = match.by_method.get(method)
    if candidates is None:
        raise _no_method(((b"allow", ", ".join(match.by_method).encode()),))
    if candidates[0].content_first:
        _check_content_type(exchange.headers)
    for route in candidates:
        if route.since <= version <= route.until:
            break
    else:
        if candidates[0].too_old == HTTPStatus.METHOD_NOT_ALLOWED:
            raise _no_method()
        raise ProblemError(HTTPStatus.NOT_FOUND, "")
    if route.content and not route.content_first:
        _check_content_type(exchange.headers)
    if route.accept and not negotiation.accepts_json(exchange.headers.get("accept", "")):
        raise ProblemError(HTTPStatus.NOT_ACCEPTABLE, "Only application/json is provided")
    return route


def _no_method(headers: tuple[tuple[bytes, bytes], ...] = ()) -> ProblemError:
    return ProblemError(
        HTTPStatus.METHOD_NOT_ALLOWED,
        "The method specified is not allowed for this resource." if headers else "",
        headers=headers,
    )


def _check_content_type(headers: dict[str, str]) -> None:
    kind = headers.get("content-type", "").partition(";")[0].strip()
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


def _answered(exchange: RequestState, answer: Response) -> tuple[int, Headers, Body]:
    headers = [*_version_headers(exchange.version)]
    if answer.body is not None:
        headers.append((b"content-type", b"application/json"))
    if answer.location is not None:
        headers.append((b"location", exchange.url(answer.location).encode("latin-1", "replace")))
    if answer.modified is not None and (exchange.version or 0) >= CACHE_HEADERS_SINCE:
        if answer.modified != NEVER:
            headers.append((b"last-modified", http_date(answer.modified).encode()))
        headers.append((b"cache-control", b"no-cache"))
    return answer.status, headers, answer.body or b""


def _refused(exchange: RequestState, problem: ProblemError) -> tuple[int, Headers, bytes]:
    problem.subject = _subject(exchange, problem.status)
    kind = negotiation.error_type(exchange.headers.get("accept", ""))
    if kind == negotiation.HTML:
        body = problems.body_html(problem)
    elif kind == negotiation.TEXT:
        body = problems.body_text(problem)
    elif problem.status == HTTPStatus.UNAUTHORIZED:
        body = problems.body_unauthorized(problem, exchange.request_id)
    else:
        body = problems.body_json(problem, exchange.request_id, exchange.version)
    shown = kind if kind == negotiation.JSON else f"{kind}; charset=UTF-8"
    headers = [*_version_headers(exchange.version), *problem.headers]
    headers.append((b"content-type", shown.encode()))
    return problem.status, headers, body


def _subject(exchange: RequestState, status: int) -> str:
    """Return the part of the request that the status refers to."""
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        return str(exchange.scope["method"])
    if status == HTTPStatus.NOT_ACCEPTABLE:
        return negotiation.accept_shown(exchange.headers.get("accept", ""))
    if status == HTTPStatus.UNSUPPORTED_MEDIA_TYPE:
        return exchange.headers.get("content-type") or "None"
    return ""
