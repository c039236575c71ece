"""The way of one request through the gate."""

import asyncio
import logging
from uuid import uuid4

import aiohttp
from aiohttp import web
from multidict import CIMultiDict

from moorage.integrations.connection_errors import reason_of
from moorage.integrations.ironic.clients import policy_of
from moorage.integrations.ironic.gate.answers import HttpAnswer, fault
from moorage.integrations.ironic.gate.deciding import Asked, Deciding, hold_until
from moorage.integrations.ironic.gate.heads import BadHeadError, check_head, end_to_end, is_coded
from moorage.integrations.ironic.gate.metrics import GateMetrics
from moorage.integrations.ironic.gate.passing import (
    BodyError,
    pass_through,
    without_additions,
    write,
)
from moorage.integrations.ironic.gate.spool import Spool, Spools, TooLargeError
from moorage.integrations.ironic.gate.upstream import AwayError, Upstream
from moorage.integrations.ironic.provision_request import AmbiguousError, ProvisionPath, place_of
from moorage.integrations.ironic.rules import Rules

log = logging.getLogger("moorage.gate")


class Gate:
    """Answers requests: passes them on, or decides them."""

    def __init__(
        self, upstream: Upstream, deciding: Deciding, rules: Rules, meters: GateMetrics
    ) -> None:
        self._upstream = upstream
        self._deciding = deciding
        self._rules = rules
        self._meters = meters
        self._spools = Spools()

    def application(self) -> web.Application:
        """Return the application, whose only handler takes every request."""
        app = web.Application()
        app.on_response_prepare.append(without_additions)
        app.router.add_route("*", "/{anything:.*}", self._handle, expect_handler=_unanswered)
        return app

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        target = request.raw_path
        try:
            version = (request.version.major, request.version.minor)
            headers = CIMultiDict(request.headers)
            check_head(request.method, target, headers, version)
            place = place_of(
                request.method,
                target,
                has_body=request.body_exists,
                is_coded=is_coded(headers),
            )
        except (BadHeadError, AmbiguousError) as error:
            return await self._bad(request, str(error))
        try:
            if place is None:
                self._meters.passed.inc()
                return await pass_through(request, self._upstream)
            return await self._decide(request, place)
        except BodyError as error:
            return await self._bad(request, str(error))
        except (aiohttp.ClientError, TimeoutError, OSError, AwayError) as error:
            reason = reason_of(error)
            text = reason if isinstance(error, AwayError) else f"Ironic does not answer: {reason}"
            if request.transport is None or request.transport.is_closing():
                raise
            log.warning("%s %s: %s", request.method, target.partition("?")[0], reason)
            return await self._write(request, 503, text)

    async def _decide(self, request: web.Request, place: ProvisionPath) -> web.StreamResponse:
        content_type = request.headers.get("Content-Type")
        with Spool(self._spools, request) as spool:
            try:
                await spool.fill()
                wanted = await spool.asked(place, request.raw_path, content_type)
            except AmbiguousError as error:
                return await self._bad(request, str(error))
            except TooLargeError:
                return await self._write(request, 409, "The body is too large for the gate.")
            policy = policy_of(request.headers.get("User-Agent", ""), self._rules.clients)
            headers = end_to_end(request.raw_headers)
            headers.popall("Expect", None)
            asked = Asked(
                method=request.method,
                target=request.raw_path,
                headers=headers,
                spool=spool,
                node=wanted.node,
                verb=wanted.target,
                id=_request_id(),
                policy=policy,
                until=hold_until(policy),
            )
            return await write(request, await self._answer(asked))

    async def _answer(self, asked: Asked) -> HttpAnswer:
        try:
            return await self._deciding.answer(asked)
        except asyncio.CancelledError:
            asked.left = True
            raise

    async def _bad(self, request: web.Request, text: str) -> web.StreamResponse:
        self._meters.refused.inc()
        response = await self._write(request, 400, text)
        # The next bytes on this connection may belong to the refused request.
        response.force_close()
        return response

    async def _write(self, request: web.Request, status: int, text: str) -> web.StreamResponse:
        versions = self._upstream.headers(request.headers)
        return await write(request, fault(status, text, _request_id(), versions))


async def _unanswered(_request: web.Request) -> None:
    """Leave `100 Continue` to the reader of the body."""


def _request_id() -> str:
    return f"req-{uuid4()}"
