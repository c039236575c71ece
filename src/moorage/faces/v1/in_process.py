"""Calls of the native API from inside the process, for faces that show pages."""

import asyncio
import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from moorage.core.errors import Error
from moorage.faces.delivery import Delivery
from moorage.faces.native_api import Query, RefusedError
from moorage.faces.path_table import Table
from moorage.faces.v1 import problems, roles
from moorage.faces.v1.decoding import fitted, query_decode
from moorage.faces.v1.problems import ProblemError
from moorage.faces.v1.routes import ROUTES
from moorage.faces.v1.routing import Request, Route, StatusAnswer
from moorage.faces.web import Caller, RefusalError, request_id_new
from moorage.service.app import Service

log = logging.getLogger("moorage.v1")


class InProcessApi:
    """Implements `faces.native_api.NativeApi` with the handlers of the route table."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._table = Table(ROUTES)

    async def ask(
        self,
        caller: Caller,
        method: str,
        path: str,
        query: Query = (),
        body: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the answer of a route. Raises RefusedError."""
        request_id = request_id_new()
        try:
            route, variables = self._route(method, path)
            role = roles.check_caller(caller, route)
            request: Request[Any, Any] = Request(
                service=self._service,
                caller=caller,
                role=role,
                project=roles.project_of(caller, role),
                request_id=request_id,
                headers={},
                variables=variables,
                parameters=_parameters(route, query),
                body=None if route.body is None else fitted(body or {}, route.body),
                disconnected=_never,
                delivery=Delivery({}, self._service.admission.confirmations),
                still=_still,
            )
            answer = await route.handler(request)
        except (Error, ProblemError, RefusalError) as error:
            raise _refused(error) from None
        except Exception:
            log.exception("%s %s %s failed", request_id, method, path)
            raise RefusedError(
                HTTPStatus.INTERNAL_SERVER_ERROR,
                problems.INTERNAL,
                f"The server failed; its log has the reason under the request id {request_id}.",
            ) from None
        return answer.body if isinstance(answer, StatusAnswer) else answer

    def permits(self, caller: Caller, method: str, path: str) -> bool:
        """Return whether the caller may call the route."""
        try:
            route, _ = self._route(method, path)
            roles.check_caller(caller, route)
        except ProblemError:
            return False
        return True

    def _route(self, method: str, path: str) -> tuple[Route, dict[str, str]]:
        """Return the route and its variables. Raises ProblemError: 404, 405."""
        match = self._table.match(path)
        if match is None:
            raise ProblemError(HTTPStatus.NOT_FOUND, problems.UNROUTED, f"No route at {path}.")
        route = match.by_method.get(method)
        if route is None or route.operation.bulk:
            raise ProblemError(
                HTTPStatus.METHOD_NOT_ALLOWED, problems.UNROUTED, f"No {method} at {path}."
            )
        return route, match.variables


def _parameters(route: Route, query: Query) -> Any:
    return None if route.parameters is None else query_decode([*query], route.parameters)


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
