"""One function per Boskos call. Arguments come only from the query; empty counts as absent."""

from collections.abc import Awaitable, Callable, Iterable
from time import perf_counter

from msgspec import Struct

from moorage.core import durations
from moorage.core.admission.model import Slot
from moorage.core.clock import SECOND
from moorage.core.durations import DurationError
from moorage.core.errors import Code, Error
from moorage.core.limits import BOSKOS_NAMES_MAX
from moorage.faces.boskos import responses
from moorage.faces.delivery import Delivery
from moorage.faces.golang.decoding import BodyError, strings_read
from moorage.faces.golang.responses import Response, refusal
from moorage.faces.golang.texts import storable
from moorage.faces.json_decoding import decoded
from moorage.service.access.audit import Actor
from moorage.service.compat.boskos import Boskos
from moorage.service.compat.boskos_cases import Release, Reset, Update

Observe = Callable[[str, str, str, bool, float], None]
"""Called on success: type, state, destination, whether it had a request id, seconds waited."""


class Request(Struct, frozen=True):
    """The input of a handler."""

    method: str
    query: dict[str, str]
    body: Callable[[], Awaitable[bytes]]
    boskos: Boskos
    observe: Observe
    by: Actor
    delivery: Delivery

    def get(self, name: str) -> str:
        """Return an argument as it was sent; empty if absent."""
        return self.query.get(name, "")


Handler = Callable[[Request], Awaitable[Response]]


def _only_post(request: Request, path: str) -> Response | None:
    if request.method == "POST":
        return None
    return refusal(405, f"Method {request.method}, {path} only accepts POST.")


async def acquire(request: Request) -> Response:
    """Acquire a resource of a type; the refusal asks the client to retry."""
    if wrong := _only_post(request, "/acquire"):
        return wrong
    kind, state, dest, owner = map(request.get, ("type", "state", "dest", "owner"))
    if not (kind and state and dest and owner):
        return refusal(
            400,
            f"Bad request: Type: {kind}, state: {state}, dest: {dest}, owner: {owner}, "
            "all of them must be set in the request.",
        )
    state, dest = storable(state), storable(dest)  # they also become metric labels
    request_id = request.get("request_id")
    begun = perf_counter()
    try:
        got = await request.boskos.acquire(
            storable(kind),
            state,
            dest,
            storable(owner),
            storable(request_id),
            attended=request.delivery.is_watched,
        )
    except Error as error:
        if error.code in (Code.OVERLOADED, Code.QUEUE_FULL):
            text = f"no available resource {kind}, try again later."
            error = Error(Code.NO_CAPACITY, text)  # a 5xx would be fatal to its clients
        return responses.refused(error, "Acquire failed: ", kind)
    _tell(request, [got.slot])
    seconds = got.waited / SECOND + perf_counter() - begun
    request.observe(got.slot.pool, state, dest, bool(request_id), seconds)
    return responses.resource_answer(got.slot)


def _tell(request: Request, slots: Iterable[Slot]) -> None:
    """Note that the answer tells the caller which slots it has."""
    for slot in slots:
        if request.delivery.is_watched and slot.lease is not None:
            request.delivery.tells_of(slot.lease)


async def acquire_by_state(request: Request) -> Response:
    """Acquire resources by name."""
    if wrong := _only_post(request, "/acquire"):
        return wrong
    state, dest, owner, names = map(request.get, ("state", "dest", "owner", "names"))
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
            attended=request.delivery.is_watched,
        )
    except Error as error:
        return responses.refused(error, "AcquireByState: ")
    _tell(request, got)
    return responses.resources_answer(got)


async def release(request: Request) -> Response:
    """Release a resource."""
    if wrong := _only_post(request, "/release"):
        return wrong
    name, dest, owner = map(request.get, ("name", "dest", "owner"))
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
        return responses.refused(error, f"Done failed: {name} - {dest} (from {owner}): ")
    return Response(200)


async def update(request: Request) -> Response:
    """Renew a resource and store user data."""
    if wrong := _only_post(request, "/update"):
        return wrong
    name, owner, state = map(request.get, ("name", "owner", "state"))
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
        return responses.refused(error, f"Update failed: {name} - {state} ({owner}): ")
    return Response(200)


async def reset(request: Request) -> Response:
    """Take away resources that their owners have not renewed for too long."""
    if wrong := _only_post(request, "/reset"):
        return wrong
    kind, state, expire, dest = map(request.get, ("type", "state", "expire", "dest"))
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
        return responses.refused(error, "could not reset states: ")
    return responses.owners_answer(owners)


async def metric(request: Request) -> Response:
    """Count the resources of a type."""
    if request.method != "GET":
        return refusal(405, "/metric only accepts GET")
    kind = request.get("type")
    if not kind:
        return refusal(400, "Type must be set in the request.")
    try:
        return responses.metric_answer(kind, await request.boskos.counts(storable(kind)))
    except Error as error:
        return responses.refused(error)


HANDLERS: dict[str, Handler] = {
    "/acquire": acquire,
    "/acquirebystate": acquire_by_state,
    "/release": release,
    "/update": update,
    "/reset": reset,
    "/metric": metric,
}
"""Handlers by path. Every other path is answered 200 with an empty body."""
