"""Speaks HTTP for the double: the API of Kubernetes, faults, the log, and control by tests."""

import asyncio
import json
from collections import Counter
from dataclasses import replace
from ssl import SSLContext
from uuid import uuid4

from aiohttp import web

from tests.support.kubernetes_double import discovery, status, tables
from tests.support.kubernetes_double.access import Access, Account
from tests.support.kubernetes_double.admission import Admission, Engine
from tests.support.kubernetes_double.decoding import completed
from tests.support.kubernetes_double.faults import DROP, Fault, Faults
from tests.support.kubernetes_double.kinds import CRDS, HOSTS, KINDS, Kind, definition
from tests.support.kubernetes_double.reads import Reads
from tests.support.kubernetes_double.requests import Received, Target
from tests.support.kubernetes_double.storage import Object, Storage
from tests.support.kubernetes_double.writes import Writes
from tests.support.listening import Listener

CONTROL = "/_double/"
LARGEST_BODY = 3 * 1024 * 1024
SPACES = ("default", "kube-system", "metal3", "moorage")
PROTOBUF = "proto-openapi"
SCHEMA = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
CREATED = 201
WRITES_MAX = 200
"""Writes that are carried out at the same time, as `--max-mutating-requests-inflight` says by
default; others wait."""


class KubernetesDouble:
    """A double of a Kubernetes API server on a free port. Asynchronous context manager.

    `storage` outlives it: a stopped double can start again, on the same port. `accounts` are by
    token; without any, no token is needed. `admission.engine` evaluates admission policies.
    With `tls` it speaks HTTPS: kubectl sends no token otherwise.
    """

    def __init__(
        self,
        storage: Storage | None = None,
        *,
        accounts: dict[str, Account] | None = None,
        engine: Engine | None = None,
        port: int = 0,
        tls: SSLContext | None = None,
    ) -> None:
        self.storage = storage or Storage()
        self.access = Access(accounts or {})
        self.admission = Admission(self.storage, engine)
        self.writes, self.reads = Writes(self.storage, self.admission), Reads(self.storage)
        self.faults = Faults()
        self.requests: list[Received] = []
        self._watches: dict[int, web.Request] = {}
        self._arrived = asyncio.Event()
        self._writing = asyncio.Semaphore(WRITES_MAX)
        self._port, self._tls = port, tls
        self._fill()

    def _fill(self) -> None:
        for name in SPACES:
            self.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        self.put(definition(HOSTS), CRDS)

    def put(self, document: Object, kind: Kind | None = None) -> Object:
        """Store an object as it is, unless it is there: no rule, no admission."""
        stated = (document["apiVersion"], document["kind"])
        kind = kind or next(one for one in KINDS if (one.api_version, one.kind) == stated)
        metadata = {"uid": str(uuid4()), **document["metadata"]}
        document = {**document, "metadata": metadata}
        completed(kind, document)
        space = metadata.get("namespace", "default") if kind.namespaced else ""
        target = Target(kind, space, metadata["name"], "")
        held = self.storage.get(target.key)
        return held or self.storage.write(target.key, document)

    async def start(self) -> None:
        """Listen; `url` is its address from then on. What was before is not in its history."""
        self.storage.forget()
        application = web.Application(client_max_size=LARGEST_BODY)
        application.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(
            application, access_log=None, shutdown_timeout=0.1, handler_cancellation=True
        )
        await self._runner.setup()
        self._listener = Listener(self._port)
        await web.SockSite(self._runner, self._listener, ssl_context=self._tls).start()
        self._port = self._runner.addresses[0][1]
        scheme = "http" if self._tls is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self._port}"

    async def stop(self) -> None:
        """End it, with all connections; new ones are refused until it starts again."""
        self.drop_watches()
        await self._listener.stop(self._runner)

    async def __aenter__(self) -> "KubernetesDouble":
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def drop_watches(self) -> None:
        """Cut the connections of all watches."""
        for http in [*self._watches.values()]:
            _cut(http)

    def forget(self) -> None:
        """Forget the history of all objects, as after a start."""
        self.storage.forget()

    async def received(self, verb: str, plural: str, number: int = 1) -> None:
        """Return when this many requests have arrived, answered or not."""
        while self.counts[verb, plural] < number:
            await self._arrived.wait()

    @property
    def counts(self) -> Counter[tuple[str, str]]:
        """How many requests were received, by verb and resource."""
        return Counter((one.verb, one.target.kind.plural) for one in self.requests)

    async def _handle(self, http: web.Request) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in http.headers.items()}
        request = Received(http.method, http.raw_path, headers, await http.read())
        try:
            if request.path.startswith(CONTROL):
                return self._control(request)
            account = self.access.acting(request)
            request = replace(request, user=account.user)
            if found := self._document(request):
                return found
            self.access.check(account, request)
            return await self._answer(http, request)
        except status.Refused as refused:
            return _refusal(refused)
        except status.NotServed as unknown:
            return web.Response(text=unknown.text, status=404)

    def _document(self, request: Received) -> web.Response | None:
        if request.method != "GET":
            return None
        accept = request.headers.get("accept", "")
        if request.path in ("/healthz", "/livez", "/readyz"):
            return web.Response(text="ok")
        found = discovery.document(request.path, accept)
        if found is None:
            return None
        if request.path == "/openapi/v2" and PROTOBUF in accept:
            # An empty message: clients then have no schema, and check nothing.
            return web.Response(body=b"", content_type=SCHEMA)
        kind = "application/json"
        if found.get("kind") == discovery.AGGREGATED:
            version = found["apiVersion"].partition("/")[2]
            kind += f";g=apidiscovery.k8s.io;v={version};as={discovery.AGGREGATED}"
        headers = {"Content-Type": kind}
        return web.Response(body=json.dumps(found).encode(), headers=headers)

    async def _answer(self, http: web.Request, request: Received) -> web.StreamResponse:
        request.verb  # noqa: B018 - a method that a path does not have is refused
        fault = self.faults.next(request)
        self.requests.append(request)
        self._arrived.set()
        self._arrived = asyncio.Event()
        if fault is None:
            return await self._carry_out(http, request)
        if fault.wait:
            await _pause(fault.wait)
        if fault.answer is None:
            return await self._carry_out(http, request)
        if fault.carry_out:
            await self._carry_out(http, request)
        if fault.answer == DROP:
            _cut(http)
            return web.Response(status=500)
        after = {"retryAfterSeconds": fault.retry_after}
        return _refusal(status.Refused(fault.answer, fault.says, **after))

    async def _carry_out(self, http: web.Request, request: Received) -> web.StreamResponse:
        match request.verb:
            case "watch":
                return await self._watch(http, request)
            case "get":
                return _answer(request, self.reads.get(request))
            case "list":
                return _answer(request, await self.reads.listed(request))
        async with self._writing:
            return await self._write(request)

    async def _write(self, request: Received) -> web.Response:
        match request.verb:
            case "create":
                return _answer(request, await self.writes.create(request), CREATED)
            case "update":
                return _answer(request, await self.writes.update(request))
            case "patch":
                there = self.storage.get(request.target.key) is not None
                found = await self.writes.patch(request)
                return _answer(request, found, 200 if there else CREATED)
            case "delete":
                return _answer(request, self.writes.delete(request))
        return _answer(request, self._delete_all(request))

    def _delete_all(self, request: Received) -> Object:
        kind = request.target.kind
        found = self.reads.page(request)
        for item in found["items"]:
            metadata = item["metadata"]
            target = Target(kind, metadata.get("namespace", ""), metadata["name"], "")
            self.writes.remove(target, item)
        return found

    async def _watch(self, http: web.Request, request: Received) -> web.StreamResponse:
        events = self.reads.watch(request)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        self.reads.check_watch(request)
        as_table, headers = tables.wants_table(request), True
        await response.prepare(http)
        self._watches[id(http)] = http
        try:
            async for event in events:
                shown = event["object"]
                if as_table and event["type"] != "ERROR":
                    shown, headers = tables.table(request, shown, headers=headers), False
                await response.write(json.dumps({**event, "object": shown}).encode() + b"\n")
            await response.write_eof()
        except ConnectionError:
            pass  # the client is gone, or the test has cut the connection
        finally:
            del self._watches[id(http)]
        return response

    def _control(self, request: Received) -> web.Response:
        """Do what a test in another process wants of the double."""
        wanted = request.document or {}
        match request.path.removeprefix(CONTROL):
            case "fault":
                self.faults.pending.append(Fault(**wanted))
            case "forget":
                self.forget()
            case "drop-watches":
                self.drop_watches()
            case _:
                raise status.NotServed
        return web.json_response({})


def _answer(request: Received, found: Object, code: int = 200) -> web.Response:
    """Return what was found or stored, as a table if that is wanted, with the warnings."""
    if found["kind"] != "Status" and tables.wants_table(request):
        found = tables.table(request, found)
    answer = web.json_response(found, status=code)
    for text in dict.fromkeys(request.warnings):
        answer.headers.add("Warning", f"299 - {json.dumps(text)}")
    return answer


def _refusal(refused: status.Refused) -> web.Response:
    seconds = refused.body.get("details", {}).get("retryAfterSeconds")
    headers = {"Retry-After": str(seconds)} if seconds else {}
    return web.json_response(refused.body, status=refused.code, headers=headers)


def _cut(http: web.Request) -> None:
    if http.transport is not None:
        http.transport.abort()


async def _pause(seconds: float) -> None:
    over = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(seconds, over.set_result, None)
    await over
