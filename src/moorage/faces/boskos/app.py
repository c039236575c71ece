"""The entry point of Boskos: a raw ASGI application, so that answers match those of Boskos."""

import logging

from moorage.faces.boskos.handlers import HANDLERS, Observe, Request
from moorage.faces.delivery import Delivery
from moorage.faces.golang.bodies import body_of
from moorage.faces.golang.passwords import Passwords
from moorage.faces.golang.query import query_values
from moorage.faces.golang.responses import Response, answer_send, refusal
from moorage.faces.golang.routing import without_handler
from moorage.faces.web import Limits, Receive, RefusalError, Scope, Send
from moorage.service.access.audit import Actor
from moorage.service.admission.confirmations import Confirmations
from moorage.service.compat.boskos import Boskos

ROLE = "boskos"
"""Role of all callers in audit rows."""

log = logging.getLogger("moorage.boskos")


class BoskosFace:
    """The ASGI application."""

    def __init__(
        self,
        boskos: Boskos,
        confirmations: Confirmations,
        limits: Limits,
        passwords: Passwords,
        observe: Observe,
    ) -> None:
        """Create the face.

        Args:
            boskos: the resources.
            confirmations: of its grants.
            limits: limits on the size of requests.
            passwords: the valid credentials.
            observe: called for every acquired resource.
        """
        self._boskos = boskos
        self._confirmations = confirmations
        self._limits = limits
        self._passwords = passwords
        self._observe = observe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        delivery = Delivery(scope, self._confirmations, sole=True)
        answer = await self._answer(scope, receive, delivery)
        delivery.sends()
        await answer_send(answer, scope["method"], send)

    async def _answer(self, scope: Scope, receive: Receive, delivery: Delivery) -> Response:
        method, path = scope["method"], scope["path"]
        if path == "*":
            return Response(400, more=((b"connection", b"close"),))
        answer = without_handler(scope, self._passwords)
        if answer is not None:
            return answer
        handler = HANDLERS.get(path)
        if handler is None:
            return Response(200)

        async def body() -> bytes:
            return await body_of(scope, receive, self._limits)

        try:
            request = Request(
                method,
                query_values(scope["query_string"]),
                body,
                self._boskos,
                self._observe,
                Actor(self._passwords.caller(scope), None, ROLE),
                delivery,
            )
            return await handler(request)
        except RefusalError as refused:
            return refusal(refused.status, refused.message)
        except Exception:  # as in Go's server, the client learns no details
            delivery.fails()
            log.exception("%s %s failed", method, path)
            return refusal(500, "the server has erred; its log says how")
