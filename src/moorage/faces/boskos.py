"""The Boskos API for its unmodified clients: boskosctl, janitor, reaper, mason and CI.

A raw ASGI application: answers match those of Boskos byte for byte. Arguments come only from
the query; empty counts as absent.

Source: recorded traffic, and the structures and formats of its source code.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from operator import itemgetter
from time import perf_counter

from msgspec import Struct

from moorage.core import durations
from moorage.core.admission.compat.slots_by_name import Counts
from moorage.core.admission.model import Slot
from moorage.core.clock import SECOND
from moorage.core.durations import DurationError
from moorage.core.errors import Code, Error
from moorage.core.limits import BOSKOS_NAMES_MAX
from moorage.faces.delivery import Delivery
from moorage.faces.golang.bodies import BodyError, body_of, strings_read
from moorage.faces.golang.callers import Passwords
from moorage.faces.golang.query import Arguments, query_values
from moorage.faces.golang.responses import (
    JSON,
    Response,
    json_list,
    json_numbers,
    json_object,
    json_string,
    json_strings,
    json_time,
    quoted,
    raw_bytes,
    refusal,
    response_send,
    storable,
    text_answer,
)
from moorage.faces.golang.routing import without_handler
from moorage.faces.json_decoding import decoded
from moorage.faces.web import DELIVERY, Limits, Receive, RefusalError, Scope, Send
from moorage.service.admission.confirmations import Confirmations
from moorage.service.audit_entries import Actor
from moorage.service.compat.boskos import Boskos
from moorage.service.compat.boskos_cases import Release, Reset, Update

log = logging.getLogger("moorage.boskos")

ROLE = "boskos"
"""Role of all callers in audit rows."""

STATUSES = {
    Code.NO_CAPACITY: 404,
    Code.POOL_UNKNOWN: 404,
    Code.SLOT_NOT_FOUND: 404,
    Code.HOLDER_MISMATCH: 401,
    Code.SLOT_STATE: 409,
    Code.LIMIT_EXCEEDED: 400,
    Code.INVALID: 400,
}
"""Status by code. Every other code is 500, which the clients retry a few times."""


def resource(slot: Slot) -> str:
    """Return a resource as JSON."""
    members = [
        ("type", json_string(slot.pool)),
        ("name", json_string(slot.name)),
        ("state", json_string(slot.state)),
        ("owner", json_string(slot.owner)),
        ("lastupdate", json_time(slot.updated_at)),
        ("userdata", json_strings(slot.user_data)),
    ]
    if slot.expires_at is not None:
        members.append(("expiration-date", json_time(slot.expires_at)))
    return json_object(members)


def resource_answer(slot: Slot) -> Response:
    """Return the response with one resource."""
    return text_answer(resource(slot))


def resources_answer(slots: Iterable[Slot]) -> Response:
    """Return the response with several resources."""
    return text_answer(json_list(map(resource, slots)) + "\n")


def owners_answer(owners: Mapping[str, str]) -> Response:
    """Return the response with the previous owners of reset resources."""
    return text_answer(json_strings(owners))


def metric_answer(kind: str, found: Counts) -> Response:
    """Return the response with the number of a type's resources by state and by owner."""
    body = json_object(
        [
            ("type", json_string(kind)),
            ("current", json_numbers(found.states)),
            ("owner", json_numbers(found.owners)),
        ]
    )
    return Response(200, raw_bytes(body), JSON)


def refused(error: Error, prefix: str = "", kind: str = "") -> Response:
    """Return the response for an error.

    Args:
        error: the core's error.
        prefix: text before the message: what failed.
        kind: the requested type.
    """
    text = error.message
    if error.code is Code.POOL_UNKNOWN:
        text = f"resource type {quoted(kind)} does not exist"
    return refusal(STATUSES.get(error.code, 500), prefix + text)


Observe = Callable[[str, str, str, bool, float], None]
"""Called on success: type, state, destination, whether it had a request id, seconds waited."""


class Request(Struct, frozen=True):
    """The input of a handler."""

    method: str
    query: Arguments
    body: Callable[[], Awaitable[bytes]]
    boskos: Boskos
    observe: Observe
    by: Actor
    delivery: Delivery


Handler = Callable[[Request], Awaitable[Response]]


async def acquire(request: Request) -> Response:
    """Acquire a resource of a type; the refusal asks the client to retry."""
    kind, state, dest, owner = itemgetter("type", "state", "dest", "owner")(request.query)
    if not (kind and state and dest and owner):
        return refusal(
            400,
            f"Bad request: Type: {kind}, state: {state}, dest: {dest}, owner: {owner}, "
            "all of them must be set in the request.",
        )
    state, dest = storable(state), storable(dest)  # they also become metric labels
    request_id = request.query["request_id"]
    begun = perf_counter()
    try:
        got = await request.boskos.acquire(
            storable(kind),
            state,
            dest,
            storable(owner),
            storable(request_id),
            attended=request.delivery.watch is not None,
        )
    except Error as error:
        if error.code in (Code.OVERLOADED, Code.QUEUE_FULL):
            text = f"no available resource {kind}, try again later."
            error = Error(Code.NO_CAPACITY, text)  # a 5xx would be fatal to its clients
        return refused(error, "Acquire failed: ", kind)
    _tell(request, [got.slot])
    seconds = got.waited / SECOND + perf_counter() - begun
    request.observe(got.slot.pool, state, dest, bool(request_id), seconds)
    return resource_answer(got.slot)


def _tell(request: Request, slots: Iterable[Slot]) -> None:
    """Note that the answer tells the caller which slots it has."""
    for slot in slots:
        if request.delivery.watch is not None and slot.lease is not None:
            request.delivery.tells_of(slot.lease)


async def acquire_by_state(request: Request) -> Response:
    """Acquire resources by name."""
    state, dest, owner, names = itemgetter("state", "dest", "owner", "names")(request.query)
    if not (state and dest and owner and names):
        return refusal(
            400,
            f"state: {state}, dest: {dest}, owner: {owner}, names: {names} - "
            "all of them must be set in the request.",
        )
    wanted = names.split(",")
    if len(wanted) > BOSKOS_NAMES_MAX:
        return refusal(400, f"more than {BOSKOS_NAMES_MAX} names are given")
    try:
        got = await request.boskos.acquire_named(
            storable(state),
            storable(dest),
            storable(owner),
            map(storable, wanted),
            attended=request.delivery.watch is not None,
        )
    except Error as error:
        return refused(error, "AcquireByState: ")
    _tell(request, got)
    return resources_answer(got)


async def release(request: Request) -> Response:
    """Release a resource."""
    name, dest, owner = itemgetter("name", "dest", "owner")(request.query)
    if not (name and dest and owner):
        return refusal(
            400,
            f"Name: {name}, dest: {dest}, owner: {owner}, all of them must be set in the request.",
        )
    try:
        case = Release(
            storable(name), storable(owner), request.boskos.native, storable(dest), request.by
        )
        await request.boskos.transactor.submit(case)
    except Error as error:
        return refused(error, f"Done failed: {name} - {dest} (from {owner}): ")
    return Response(200)


async def update(request: Request) -> Response:
    """Renew a resource and store user data."""
    name, owner, state = itemgetter("name", "owner", "state")(request.query)
    if not (name and owner and state):
        return refusal(
            400,
            f"Name: {name}, owner: {owner}, state : {state}, "
            "all of them must be set in the request.",
        )
    try:
        body = await request.body()
        user_data = await decoded(body, lambda: strings_read(body))
    except BodyError as error:
        return refusal(400, str(error))
    try:
        case = Update(
            storable(name), storable(owner), request.boskos.native, storable(state), user_data
        )
        await request.boskos.transactor.submit(case)
    except Error as error:
        return refused(error, f"Update failed: {name} - {state} ({owner}): ")
    return Response(200)


async def reset(request: Request) -> Response:
    """Take away resources that their owners have not renewed for too long."""
    kind, state, expire, dest = itemgetter("type", "state", "expire", "dest")(request.query)
    if not (kind and state and expire and dest):
        return refusal(
            400,
            f"Type: {kind}, state: {state}, expire: {expire}, dest: {dest}, "
            "all of them must be set in the request.",
        )
    try:
        nanoseconds = durations.parse(expire)
    except DurationError as error:
        return refusal(400, str(error))
    try:
        native, into = request.boskos.native, storable(dest)
        case = Reset(storable(kind), storable(state), nanoseconds, into, native, request.by)
        owners = await request.boskos.transactor.submit(case)
    except Error as error:
        return refused(error, "could not reset states: ")
    return owners_answer(owners)


async def metric(request: Request) -> Response:
    """Count the resources of a type."""
    if request.method != "GET":
        return refusal(405, "/metric only accepts GET")
    kind = request.query["type"]
    if not kind:
        return refusal(400, "Type must be set in the request.")
    try:
        return metric_answer(kind, await request.boskos.counts(storable(kind)))
    except Error as error:
        return refused(error)


HANDLERS: dict[str, Handler] = {
    "/acquire": acquire,
    "/acquirebystate": acquire_by_state,
    "/release": release,
    "/update": update,
    "/reset": reset,
    "/metric": metric,
}
"""Handlers by path. Every other path is answered 200 with an empty body."""


ONLY_POST = {
    "/acquire": "/acquire",
    "/acquirebystate": "/acquire",
    "/release": "/release",
    "/update": "/update",
    "/reset": "/reset",
}
"""Paths that take POST only, and what their refusals call them: the second one as in Boskos."""


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
        delivery = Delivery(scope.get(DELIVERY), self._confirmations, sole=True)
        answer = await self._answer(scope, receive, delivery)
        if delivery.told:
            delivery.sends()
        await response_send(answer, scope, send)

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
            if method != "POST" and (named := ONLY_POST.get(path)) is not None:
                return refusal(405, f"Method {method}, {named} only accepts POST.")
            return await handler(request)
        except RefusalError as refused:
            return refusal(refused.status, refused.message)
        except Exception:  # as in Go's server, the client learns no details
            delivery.fails()
            log.exception("%s %s failed", method, path)
            return refusal(500, "the server has erred; its log says how")
