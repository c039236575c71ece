"""The entry point of the native API: finds the route, authenticates, decodes, answers.

Checks run in this order: address, method, token, role, query, body. All others are the handler's. A
raw ASGI application, because this code runs for every request. `prompt.py` answers a fleet's signs
of life before they come here.
"""

import logging
from functools import partial
from http import HTTPStatus
from typing import Any

from moorage.core.errors import Error
from moorage.faces.addresses import client_of
from moorage.faces.delivery import CONFIRMS, Delivery
from moorage.faces.json_decoding import decoded
from moorage.faces.path_table import Table
from moorage.faces.streaming import Stream, stream_send
from moorage.faces.v1 import authorization, problems
from moorage.faces.v1.answers import SAFE, answered, head_of
from moorage.faces.v1.decoding import body_decode, query_decode
from moorage.faces.v1.problems import ProblemError
from moorage.faces.v1.routes import ROUTES
from moorage.faces.v1.routing import Request, Route
from moorage.faces.web import (
    CALLER,
    DELIVERY,
    REQUEST_ID,
    ROUTINE,
    WAITED,
    Authenticator,
    Caller,
    Limits,
    Receive,
    RefusalError,
    Scope,
    Send,
    answer_send,
    body_read,
    headers_of,
    left,
    path_check,
    query_parse,
    request_id_new,
)
from moorage.service.access.roles import Role
from moorage.service.app import Service

PAGES_LINK = '<{}/ui>; rel="alternate"; type="text/html"'
"""The header `Link` of answers if there are pages for people, below a prefix. Source: RFC 8288."""

UNPREFIXED = (b"link", PAGES_LINK.format("").encode())
"""The same without a prefix, as almost always."""

NOBODY = Caller(user_id="", project_id=None, roles=frozenset())

log = logging.getLogger("moorage.v1")


class V1Face:
    """The ASGI application.

    Args:
        service: the service behind the API.
        authenticator: identifies callers.
        limits: limits on the size of requests.
        plain_agents: whether agents may use unencrypted connections from other hosts.
        pages: whether the server has pages for people; its answers then link to them.
    """

    def __init__(
        self,
        service: Service,
        authenticator: Authenticator,
        limits: Limits,
        *,
        plain_agents: bool = False,
        pages: bool = False,
    ) -> None:
        self._pages = pages
        self._service = service
        self._authenticator = authenticator
        self._limits = limits
        self._plain_agents = plain_agents
        self._usual = limits.body_bytes_max, "body_bytes_max"
        self._bulk = limits.bulk_bytes_max, "bulk_bytes_max"
        self._table = Table(ROUTES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request_id = request_id_new()
        request: Request[Any, Any] | None = None
        try:
            route, variables = self._route(scope)
            if route.operation.routine:
                scope[ROUTINE] = True
            request = await self._request(scope, receive, route, variables, request_id)
            answer = await route.handler(request)
            if WAITED in scope:  # the token may have become invalid during the wait
                await request.still()
            if isinstance(answer, Stream):
                await stream_send(answer, head_of(request_id), scope, send, request.disconnected)
                return
            status, headers, body = answered(route, answer)
            if self._pages and route.prompt is None:  # no person reads those to signs of life
                prefix = scope.get("root_path")
                headers.append(
                    (b"link", PAGES_LINK.format(prefix).encode()) if prefix else UNPREFIXED
                )
            if request.delivery.told:
                request.delivery.sends()
        except BaseException as error:
            if request is not None:
                request.delivery.fails()
            if not isinstance(error, Exception):
                raise
            status, headers, body = _refused(error, request_id, scope)
        headers += ((REQUEST_ID, request_id.encode()), *SAFE)
        await answer_send(scope, send, status, headers, body)

    def _route(self, scope: Scope) -> tuple[Route, dict[str, str]]:
        path: str = scope["path"]
        match = self._table.match(path)
        if match is None:
            raise ProblemError(
                HTTPStatus.NOT_FOUND, problems.UNROUTED, "There is no route at this address."
            )
        path_check(path)
        route = match.by_method.get(scope["method"])
        if route is None:
            allowed = ", ".join(match.by_method)
            raise ProblemError(
                HTTPStatus.METHOD_NOT_ALLOWED,
                problems.UNROUTED,
                f"This address supports only {allowed}.",
                headers=((b"allow", allowed.encode()),),
            )
        return route, match.variables

    async def _request(
        self,
        scope: Scope,
        receive: Receive,
        route: Route,
        variables: dict[str, str],
        request_id: str,
    ) -> Request[Any, Any]:
        headers, client = headers_of(scope), client_of(scope)
        caller, role = await self._let_in(headers, client, route)
        if caller.scope is not None and not self._plain_agents:
            authorization.check_connection(caller, scope["scheme"], client)
        if caller is not NOBODY:
            scope[CALLER] = caller
        query = query_parse(scope["query_string"], self._limits) if scope["query_string"] else []
        parameters = None
        if route.parameters is not None:
            parameters = query_decode(query, route.parameters)
        elif query:
            raise RefusalError(HTTPStatus.BAD_REQUEST, "This route has no query parameters.")
        body = None
        if route.body is not None:
            bulk = route.operation.content.bulk
            limit, setting = self._bulk if bulk else self._usual
            raw = await body_read(headers, receive, limit, setting)
            if not raw and route.body_optional:
                raw = b"{}"
            body = raw if bulk else await decoded(raw, partial(body_decode, raw, route.body))

        return Request(
            service=self._service,
            caller=caller,
            role=role,
            project=authorization.project_of(caller, role),
            request_id=request_id,
            headers=headers,
            variables=variables,
            parameters=parameters,
            body=body,
            prefix=scope.get("root_path", ""),
            disconnected=partial(left, scope, receive),
            delivery=Delivery(
                scope.get(DELIVERY),
                self._service.admission.confirmations,
                confirms=CONFIRMS in headers,
            ),
            still=partial(self._let_in, headers, client, route),
        )

    async def _let_in(
        self, headers: dict[str, str], client: str, route: Route
    ) -> tuple[Caller, Role | None]:
        """Return the caller and its role. Raises ProblemError: 401, 403."""
        if route.role is None:
            return NOBODY, Role.READER
        caller = await self._authenticator.authenticate(headers, client)
        if caller is None:
            raise ProblemError(
                HTTPStatus.UNAUTHORIZED,
                problems.UNAUTHENTICATED,
                "A valid token is required.",
                headers=((b"www-authenticate", b"Bearer"),),
            )
        return caller, authorization.check_caller(caller, route)


def _refused(
    error: Exception, request_id: str, scope: Scope
) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """Return the error response for an exception."""
    if isinstance(error, RefusalError):
        error = ProblemError(error.status, problems.REFUSED, error.message)
    elif isinstance(error, Error):
        error = problems.problem_of(error)
    elif not isinstance(error, ProblemError):
        log.error("%s %s %s failed", request_id, scope["method"], scope["path"], exc_info=error)
        error = ProblemError(
            HTTPStatus.INTERNAL_SERVER_ERROR,
            problems.INTERNAL,
            "The server failed; its log has the reason under this request id.",
        )
    body = problems.body_of(error, request_id)
    headers = [
        (b"content-type", problems.MEDIA_TYPE.encode()),
        (b"content-length", str(len(body)).encode()),
        *error.headers,
    ]
    return error.status, headers, body
