"""Answers a fleet's signs of life from memory, without the machinery of the other requests.

It only ever answers 200. `app.py` handles every uncertain request and every error from the start,
so that no refusal is implemented twice. Source: decision 0032.
"""

from collections.abc import Callable
from functools import partial

from moorage.faces.json_decoding import plain_decode
from moorage.faces.path_table import Table, ends_of
from moorage.faces.v1 import authorization
from moorage.faces.v1.answers import SAFE, answered
from moorage.faces.v1.routes import ROUTES
from moorage.faces.v1.routing import PromptHandler, PromptRequest, Route
from moorage.faces.web import (
    REQUEST_ID,
    Headers,
    Limits,
    PromptAnswer,
    Recognize,
    Scope,
    headers_of,
    request_id_new,
)
from moorage.service.app import Service


class PromptFace:
    """Answers the requests of routes with a `prompt` handler.

    Args:
        service: the service behind the API.
        recognize: identifies callers at once.
        limits: limits on the size of requests.
        plain_agents: whether agents may use unencrypted connections from other hosts.
    """

    def __init__(
        self, service: Service, recognize: Recognize, limits: Limits, *, plain_agents: bool
    ) -> None:
        self._service = service
        self._recognize = recognize
        self._limits = limits
        self._plain_agents = plain_agents
        self._table = Table(ROUTES)
        self._ends = {ends_of(route.path)[1] for route in ROUTES if route.prompt is not None}

    def prompt(self, scope: Scope, body: bytes) -> PromptAnswer | None:
        """Return what may answer a request with this complete body; None: `app.py` must.

        What it returns holds no secret, and nothing of the request but what decides.
        """
        try:
            return self._understood(scope, body)
        except Exception:  # `app.py` meets it again, answers, and logs it
            return None

    def _understood(self, scope: Scope, body: bytes) -> PromptAnswer | None:
        path: str = scope["path"]
        if path.rpartition("/")[2] not in self._ends or scope["query_string"]:
            return None
        match = self._table.match(path)
        route = None if match is None else match.by_method.get(scope["method"])
        if match is None or route is None or route.prompt is None:
            return None
        headers = headers_of(scope)
        recognized = self._recognize(headers)
        if recognized is None or "content-encoding" in headers:
            return None
        if route.role is None or route.body is None or len(body) > self._limits.body_bytes_max:
            return None
        caller = recognized.caller
        authorization.check_caller(caller, route)
        sent = plain_decode(body, route.body)
        if sent is None:
            return None
        request = PromptRequest(self._service, caller, match.variables, sent)
        return partial(self._answer, route, route.prompt, request, recognized.still)

    def _answer(
        self,
        route: Route,
        handler: PromptHandler,
        request: PromptRequest[object],
        still: Callable[[], object],
        scheme: str,
        client: str,
    ) -> tuple[int, Headers, bytes] | None:
        try:
            if not still():
                return None
            if not self._plain_agents:
                authorization.check_connection(request.caller, scheme, client)
            answer = handler(request)
        except Exception:  # as above
            return None
        if answer is None:
            return None
        status, headers, content = answered(route, answer)
        headers += ((REQUEST_ID, request_id_new().encode()), *SAFE)
        return status, headers, content
