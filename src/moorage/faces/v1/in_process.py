"""Calls of the native API from inside the process, for faces that show pages."""

import asyncio
import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, TypeVar, cast

import msgspec
from msgspec import Raw

from moorage.core.errors import Error
from moorage.faces.delivery import Delivery
from moorage.faces.native_api import RefusedError
from moorage.faces.v1 import authorization, problems
from moorage.faces.v1.decoding import body_decode, fitted, query_decode
from moorage.faces.v1.problems import ProblemError
from moorage.faces.v1.routes import ROUTES
from moorage.faces.v1.routing import Request, Route, StatusAnswer
from moorage.faces.web import Caller, RefusalError, request_id_new
from moorage.service.app import Service
from moorage.wire.operations.operation import Operation, pairs_of

log = logging.getLogger("moorage.v1")

A = TypeVar("A")

_ROUTES = {route.operation: route for route in ROUTES}


class InProcessApi:
    """Implements `faces.native_api.NativeApi` with the handlers of the routes."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def call(
        self,
        caller: Caller,
        operation: Operation[A],
        *variables: str,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> A:
        """Return the answer of an operation. Raises RefusedError."""
        request_id, route = request_id_new(), _ROUTES[operation]
        try:
            role = authorization.check_caller(caller, route)
            request: Request[Any, Any] = Request(
                service=self._service,
                caller=caller,
                role=role,
                project=authorization.project_of(caller, role),
                request_id=request_id,
                headers={},
                variables=operation.named(variables),
                parameters=_parameters(route, query or {}),
                body=_body(route, body or {}),
                disconnected=_never,
                delivery=Delivery(None, self._service.admission.confirmations),
                still=_still,
            )
            answer = await route.handler(request)
            kind = operation.content.answer
            if isinstance(answer, Raw) and kind is not None:
                answer = await asyncio.to_thread(body_decode, bytes(answer), kind)
        except (Error, ProblemError, RefusalError) as error:
            raise _refused(error) from None
        except Exception:
            method, address = operation.method, operation.address(*variables)
            log.exception("%s %s %s failed", request_id, method, address)
            raise RefusedError(
                HTTPStatus.INTERNAL_SERVER_ERROR,
                problems.INTERNAL,
                f"The server failed; its log has the reason under the request id {request_id}.",
            ) from None
        return cast("A", answer.body if isinstance(answer, StatusAnswer) else answer)

    def permits(self, caller: Caller, operation: Operation[Any]) -> bool:
        """Return whether the caller may call the operation."""
        try:
            authorization.check_caller(caller, _ROUTES[operation])
        except ProblemError:
            return False
        return True


def _body(route: Route, body: Mapping[str, Any]) -> Any:
    """Return a body as the handler of the route receives it."""
    if route.operation.content.bulk:
        return msgspec.json.encode(body)
    return None if route.body is None else fitted(body, route.body)


def _parameters(route: Route, query: Mapping[str, object]) -> Any:
    return None if route.parameters is None else query_decode(pairs_of(query), route.parameters)


def _refused(error: Error | ProblemError | RefusalError) -> RefusedError:
    if isinstance(error, RefusalError):
        return RefusedError(error.status, problems.REFUSED, error.message)
    problem = problems.problem_of(error) if isinstance(error, Error) else error
    return RefusedError(problem.status, problem.code, problem.detail, problem.oldest)


async def _never() -> None:
    """Wait until the task is cancelled, as it is when its page's reader disconnects."""
    await asyncio.get_running_loop().create_future()


async def _still() -> None:
    """Do nothing: a page authorizes its reader again before each answer."""
