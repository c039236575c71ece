"""The webhook: `POST /pause` answers reviews of writes, `GET /healthz` says that it runs.

It is for clusters without policies; the shipped policy has the rule of `admission_decision.py` in
CEL.
"""

import asyncio
import base64
import json
import logging
import os
import ssl
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from socket import socket
from typing import Any

from aiohttp import web

from moorage.integrations.answers import json_of
from moorage.integrations.metal3.admission_decision import pauses
from moorage.integrations.metal3.hosts import OWN, PAUSED, annotations_of
from moorage.integrations.pem_files import PemError, serving
from moorage.integrations.web_server import served

API_VERSION = "admission.k8s.io/v1"
KIND = "AdmissionReview"


class ReviewError(ValueError):
    """This is not a review that can be answered; the message says what is wrong."""


def answered(review: Any, governor: str) -> dict[str, Any]:
    """Return the answer to a review. Raises ReviewError.

    `governor` is the user name of the governor, which is never held back.
    """
    if not isinstance(review, Mapping):
        raise ReviewError("the body must be a JSON object")
    if review.get("apiVersion") != API_VERSION or review.get("kind") != KIND:
        raise ReviewError(f"the body must be an {KIND} of {API_VERSION}")
    request = _object(review, "request", "the review")
    uid = request.get("uid")
    if not (isinstance(uid, str) and uid):
        raise ReviewError("request.uid must be a string")
    response: dict[str, Any] = {"uid": uid, "allowed": True}
    if (new := _paused(request, governor)) is not None:
        patch = base64.b64encode(json.dumps(_patch(new)).encode()).decode()
        response |= {"patchType": "JSONPatch", "patch": patch}
    return {"apiVersion": API_VERSION, "kind": KIND, "response": response}


def _paused(request: Mapping[str, Any], governor: str) -> Mapping[str, Any] | None:
    """Return the host that is to be paused; None: none is. Raises ReviewError."""
    operation = request.get("operation")
    if operation not in ("CREATE", "UPDATE") or request.get("subResource"):
        return None
    kind = _object(request, "kind", "request")
    if (kind.get("group"), kind.get("kind")) != ("metal3.io", "BareMetalHost"):
        return None
    new = _host(request, "object")
    old = _host(request, "oldObject") if operation == "UPDATE" else None
    user = _object(request, "userInfo", "request").get("username")
    if not isinstance(user, str):
        raise ReviewError("request.userInfo.username must be a string")
    options = request.get("options")
    manager = options.get("fieldManager") if isinstance(options, Mapping) else None
    return new if pauses(new, old, user, governor, str(manager or "")) else None


def _patch(host: Mapping[str, Any]) -> list[dict[str, Any]]:
    if not annotations_of(host):
        return [{"op": "add", "path": "/metadata/annotations", "value": {PAUSED: OWN}}]
    key = PAUSED.replace("~", "~0").replace("/", "~1")
    return [{"op": "add", "path": f"/metadata/annotations/{key}", "value": OWN}]


def _host(request: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    host = _object(request, name, "request")
    _object(host, "metadata", f"request.{name}")
    return host


def _object(parent: Mapping[str, Any], name: str, of: str) -> Mapping[str, Any]:
    found = parent.get(name)
    if not isinstance(found, Mapping):
        raise ReviewError(f"{of} needs an object '{name}'")
    return found


log = logging.getLogger("moorage.metal3")

Version = tuple[tuple[int, int, int], ...]


class Certificates:
    """The certificate of a server: the one in the files when a client connects.

    Open connections keep their certificate. While the files cannot be used, as in the middle of a
    renewal, new connections get the last certificate.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        """Read the files. Raises PemError."""
        self._files = (certificate, key)
        self.server = serving(*self._files)
        """The context with which the server listens."""
        self._read_as = self._version()
        self._context = serving(*self._files)
        self._trouble = ""
        self.server.sni_callback = self._chosen

    def _chosen(self, connection: ssl.SSLObject, name: str | None, asked: ssl.SSLContext) -> None:
        """Give a new connection the certificate; OpenSSL asks at the start of each handshake."""
        self._renew()
        connection.context = self._context

    def _renew(self) -> None:
        try:
            version = self._version()
            if version == self._read_as:
                return
            self._context, self._read_as, self._trouble = serving(*self._files), version, ""
            log.info("%s has changed: it is read again", self._files[0])
        except (OSError, PemError) as error:
            if str(error) != self._trouble:
                log.warning("the last certificate is offered: %s", error)
            self._trouble = str(error)

    def _version(self) -> Version:
        found = [os.stat(path) for path in self._files]
        return tuple((one.st_ino, one.st_mtime_ns, one.st_size) for one in found)


BODY_BYTES_MAX = 3 << 20
"""Bytes of a review: two hosts, of which each has at most 1.5 MiB in etcd."""

BODY_SECONDS = 4.0
"""How long a body may take; the API server waits 5 seconds for the answer."""

SMALL_BYTES = 1 << 16
"""Bytes of a body that needs no turn: most are shorter, and a connection has buffers as large."""

LARGE_MAX = 16
"""Larger bodies that are read at the same time; others wait for their turn. Slow clients, which
need no rights, can use up these turns; reviews with small bodies are answered nevertheless."""

VALUES_MAX = 200_000
"""Values in a review: each takes some 100 bytes of memory, and holds the event loop."""

CONNECTIONS_MAX = 1_000
"""API servers open one for each review under way."""

CLOSE_SECONDS = 5.0


class Webhook:
    """Answers reviews. `governor` is the user name of the governor."""

    def __init__(self, governor: str) -> None:
        """Prepare."""
        self._governor = governor
        self._large = asyncio.Semaphore(LARGE_MAX)

    def application(self) -> web.Application:
        """Return the application."""
        app = web.Application(client_max_size=BODY_BYTES_MAX)
        app.router.add_post("/pause", self._review)
        app.router.add_get("/healthz", self._healthy)
        return app

    async def _healthy(self, _request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _review(self, request: web.Request) -> web.Response:
        async with AsyncExitStack() as turn:
            try:
                async with asyncio.timeout(BODY_SECONDS):
                    body = await self._read(request, turn)
            except TimeoutError:
                text = f"the body must be here within {BODY_SECONDS:.0f} seconds\n"
                return web.Response(status=HTTPStatus.REQUEST_TIMEOUT, text=text)
            except ConnectionError:
                # Nobody reads this: without it, the log would have a traceback.
                return web.Response(status=HTTPStatus.BAD_REQUEST)
            return self._answered(body)

    async def _read(self, request: web.Request, turn: AsyncExitStack) -> bytes:
        """Read a body; `turn` ends when the answer is there."""
        body = bytearray()
        async for piece in request.content.iter_any():
            before = len(body)
            body += piece
            if len(body) > BODY_BYTES_MAX:
                raise web.HTTPRequestEntityTooLarge(BODY_BYTES_MAX, len(body))
            if before <= SMALL_BYTES < len(body):
                await turn.enter_async_context(self._large)
        return bytes(body)

    def _answered(self, body: bytes) -> web.Response:
        # One after the other: the memory of decoded reviews does not add up.
        try:
            return web.json_response(answered(json_of(body, VALUES_MAX), self._governor))
        except ReviewError as error:
            text = f"{error}\n"
        except ValueError as error:
            text = f"the body must be JSON: {error}\n"
        return web.Response(status=HTTPStatus.BAD_REQUEST, text=text)


@asynccontextmanager
async def webhook_served(
    governor: str, certificate: Path, key: Path, sockets: Collection[socket]
) -> AsyncIterator[None]:
    """Serve the webhook on sockets that listen, as long as this is entered.

    Raises PemError.
    """
    offered = Certificates(certificate, key)
    async with served(
        Webhook(governor).application(),
        sockets,
        CONNECTIONS_MAX,
        offered.server,
        shutdown_timeout=CLOSE_SECONDS,
    ):
        yield
