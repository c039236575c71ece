"""`POST /lease/acquire` waits for units, `POST /lease/release` gives them back by name.

Source: recorded traffic of the original, and its formats. Units are granted all at once or not at
all, a client that disconnects leaves nothing occupied, and repeating a release is no error.
"""

import logging
import re
from collections.abc import Awaitable, Callable
from functools import partial

from msgspec import Struct, structs

from moorage.core.errors import Code, Error
from moorage.core.limits import BOSKOS_NAMES_MAX
from moorage.faces.delivery import Delivery
from moorage.faces.golang.bodies import BodyError, body_of, names_read
from moorage.faces.golang.callers import Passwords
from moorage.faces.golang.query import query_values
from moorage.faces.golang.responses import (
    JSON,
    Response,
    json_list,
    json_object,
    json_string,
    quoted,
    raw_bytes,
    refusal,
    response_send,
    storable,
)
from moorage.faces.golang.routing import without_handler
from moorage.faces.json_decoding import decoded
from moorage.faces.web import (
    DELIVERY,
    RETRY_AFTER,
    Limits,
    Receive,
    RefusalError,
    Scope,
    Send,
    left,
)
from moorage.service.admission.confirmations import Confirmations
from moorage.service.compat.lease_proxy import CallerGoneError, LeaseProxy, NotReleasedError
from moorage.wire.labels import DESCRIBING

ACQUIRE = "/lease/acquire"
RELEASE = "/lease/release"
COUNT_END = 1 << 64
"""One more than the largest valid count."""

NOT_FOUND = "resource type not found"
NONE_IN_TIME = "resources not found"

PASSING = frozenset({Code.UNAVAILABLE, Code.OVERLOADED, Code.QUEUE_FULL, Code.LEASE_ENDED})
"""Transient failures: the same request may succeed later."""

log = logging.getLogger("moorage.leaseproxy")


class _Wanted(Struct, frozen=True):
    kind: str
    count: int


class LeaseProxyFace:
    """The ASGI application."""

    def __init__(
        self,
        proxy: LeaseProxy,
        confirmations: Confirmations,
        limits: Limits,
        passwords: Passwords,
        seconds_max: float,
    ) -> None:
        """Create the face.

        Args:
            proxy: the leases.
            confirmations: of its grants.
            limits: limits on the size of requests.
            passwords: the valid credentials.
            seconds_max: the longest time that an acquire waits.
        """
        self._proxy = proxy
        self._confirmations = confirmations
        self._limits = limits
        self._passwords = passwords
        self._seconds_max = seconds_max

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, unless the caller has disconnected."""
        delivery = Delivery(scope.get(DELIVERY), self._confirmations, sole=True)
        answer = await self._answer(scope, receive, delivery)
        if answer is not None:
            delivery.sends()
            await response_send(answer, scope, send)

    async def _answer(self, scope: Scope, receive: Receive, delivery: Delivery) -> Response | None:
        answer = without_handler(scope, self._passwords)
        if answer is not None:
            return answer
        if scope["path"] not in (ACQUIRE, RELEASE):
            return refusal(404, "404 page not found")
        if scope["method"] != "POST":
            return refusal(405, f"Method {scope['method']} not allowed, POST requests only.")
        try:
            body = await body_of(scope, receive, self._limits)
            query = query_values(scope["query_string"])
            if scope["path"] == ACQUIRE:
                return await self._acquire(query, partial(left, scope, receive), delivery)
            return await self._release(query, body)
        except RefusalError as refused:
            return refusal(refused.status, refused.message)
        except Exception:  # callers get an answer, as for any other failure
            log.exception("%s failed", scope["path"])
            return refusal(500, "the server has erred; its log says how")

    async def _acquire(
        self, query: dict[str, str], gone: Callable[[], Awaitable[None]], delivery: Delivery
    ) -> Response | None:
        wanted = _wanted(query)
        if isinstance(wanted, Response):
            return wanted
        if wanted.count == 0:
            return _names_answer([])

        try:
            got = await self._proxy.acquire(
                storable(wanted.kind), wanted.count, self._seconds_max, gone, _labels(query)
            )
        except Error as error:
            if error.code is Code.POOL_UNKNOWN:
                return _not_acquired(404, wanted.kind, NOT_FOUND)
            return _not_acquired(_failure(error.code), wanted.kind, error.message)
        except CallerGoneError:
            return None
        if got is None:
            return _not_acquired(500, wanted.kind, NONE_IN_TIME)
        delivery.tells_of(got.lease.id)
        return _names_answer(got.names)

    async def _release(self, query: dict[str, str], body: bytes) -> Response:
        if not body and query.get("name"):
            names = [storable(query["name"])]  # the form of the first clients
        else:
            try:
                names = await decoded(body, lambda: names_read(body))
            except BodyError as error:
                return refusal(400, f"unmarshal request body: {error}")
            if len(names) > BOSKOS_NAMES_MAX:
                return refusal(400, f"more than {BOSKOS_NAMES_MAX} names are given")
        try:
            await self._proxy.release(names)
        except NotReleasedError as error:
            return _failed(
                _failure(error.code),
                f"Failed to release lease {error.name}: {error.reason}\n"
                f"Released: {' '.join(error.done)}",
            )
        return Response(204)


def _wanted(query: dict[str, str]) -> _Wanted | Response:
    kind, count = query.get("type", ""), query.get("count", "")
    if not kind:
        return refusal(400, "type is required")
    if not count:
        return _Wanted(kind, 1)
    if re.fullmatch("[0-9]{1,40}", count) is None or int(count) >= COUNT_END:
        return refusal(400, f'parameter "count" is not valid: {count}')
    return _Wanted(kind, int(count))


def _labels(query: dict[str, str]) -> dict[str, str]:
    """Return the labels that Moorage's own functions for bash add; the original ignores them."""
    found = {name: query.get(f"label.{name}") for name in sorted(DESCRIBING)}
    return {name: storable(value) for name, value in found.items() if value}


def _not_acquired(status: int, kind: str, reason: str) -> Response:
    return _failed(status, f"Failed to acquire lease {quoted(kind)}: {reason}")


def _failure(code: Code) -> int:
    """Return the status of a failure: 503, which scripts retry and the original lacks, or 500."""
    return 503 if code in PASSING else 500


def _failed(status: int, text: str) -> Response:
    answer = refusal(status, text)
    if status != 503:
        return answer
    return structs.replace(answer, more=(*answer.more, RETRY_AFTER))


def _names_answer(names: list[str]) -> Response:
    body = json_object([("names", json_list(map(json_string, names)))])
    return Response(200, raw_bytes(body), JSON)
