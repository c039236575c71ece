"""Starts the gate, runs it until a signal, and stops it without losing a request."""

import asyncio
import logging
import os
import signal
import ssl
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from socket import socket

from moorage.client.transport import RefusedError, UnreachableError, shown_url
from moorage.integrations.ironic.gate.app import Gate
from moorage.integrations.ironic.gate.deciding import Deciding
from moorage.integrations.ironic.gate.listening import (
    CONNECTIONS_MAX,
    listening,
    server_tls,
    url_of,
)
from moorage.integrations.ironic.gate.metrics import GateMetrics
from moorage.integrations.ironic.gate.units import Units
from moorage.integrations.ironic.gate.upstream import Upstream
from moorage.integrations.ironic.gate.watch import Watch
from moorage.integrations.ironic.nodes import NodeReader
from moorage.integrations.ironic.reconcile import Reconciler
from moorage.integrations.ironic.rules import Rules
from moorage.integrations.lease_api import LeaseApi
from moorage.integrations.metrics_server import metrics_served
from moorage.integrations.provisioning import pools
from moorage.integrations.provisioning.host_leases import HostLeases
from moorage.integrations.sockets import ListenError
from moorage.integrations.web_server import WebServer, opened
from moorage.systemd.heartbeat import heartbeat
from moorage.systemd.notifier import Notifier

FINISH_SECONDS = 60.0
"""How long requests that were forwarded may take when the gate stops."""

CLOSE_SECONDS = 2.0
HEAD_BYTES_MAX = 32 << 10
"""Bytes in the request line, and in each header."""

log = logging.getLogger("moorage.gate")


class GateError(Exception):
    """The gate cannot start; the message is one line and says what to change."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a gate runs.

    `ironic_headers` are sent with the gate's own requests to Ironic, `trusted` has the authorities
    that may vouch for it. `listen` None: nobody has chosen an address. `watch` False: another
    process passes over the nodes; this one only once.
    """

    ironic: str
    moorage: str
    token: str | Callable[[], str] | None
    rules: Rules
    ironic_name: str | None = None
    listen: str | None = None
    metrics_listen: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    ironic_headers: Callable[[], Mapping[str, str]] = dict
    trusted: ssl.SSLContext | None = None
    watch: bool = True
    hold_counts: bool = False


def run(settings: Settings, say: Callable[[str], None]) -> int:
    """Run a gate until SIGTERM or SIGINT; return the exit code. Raises GateError.

    `say` prints the ready line.
    """
    try:
        sockets, metrics = listening(settings.listen, settings.metrics_listen)
        tls = server_tls(settings.tls_cert, settings.tls_key)
    except ListenError as error:
        raise GateError(str(error)) from None
    with asyncio.Runner() as runner:
        return runner.run(_Process(settings, say).run(sockets, metrics, tls))


class _Process:
    def __init__(self, settings: Settings, say: Callable[[str], None]) -> None:
        self._settings = settings
        self._say = say
        self._notifier = Notifier(os.environ, lambda text: log.warning("%s", text))
        self._stop = asyncio.Event()
        self._code = 0

    async def run(
        self, sockets: list[socket], metrics: list[socket], tls: ssl.SSLContext | None
    ) -> int:
        settings = self._settings
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end)
        async with AsyncExitStack() as stack:
            upstream = await stack.enter_async_context(Upstream(settings.ironic, settings.trusted))
            api = await stack.enter_async_context(LeaseApi(settings.moorage, settings.token))
            nodes = await stack.enter_async_context(
                NodeReader(settings.ironic, settings.ironic_headers, settings.trusted)
            )
            await self._check(api)
            meters, host_leases = GateMetrics(), HostLeases(api, settings.ironic_name)
            reconciler = Reconciler(
                host_leases, nodes, settings.rules, hold_counts=settings.hold_counts
            )
            watch = Watch(
                reconciler,
                meters,
                lambda: pools.check(api, settings.rules.pools),
                once=not settings.watch,
            )
            units = Units(api, host_leases, watch, meters)
            deciding = Deciding(upstream, host_leases, units, watch, settings.rules, meters)
            gate = Gate(upstream, deciding, settings.rules, meters)
            watching = loop.create_task(watch.run())
            watching.add_done_callback(self._watched)
            server = await opened(
                gate.application(),
                sockets,
                CONNECTIONS_MAX,
                tls,
                handler_cancellation=True,
                auto_decompress=False,
                max_line_size=HEAD_BYTES_MAX,
                max_field_size=HEAD_BYTES_MAX,
                shutdown_timeout=CLOSE_SECONDS,
            )
            await stack.enter_async_context(metrics_served(meters.registry, metrics))
            url = url_of(sockets[0], tls=tls is not None)
            async with heartbeat(self._notifier, lambda: self._doing(watch, url)):
                await self._ready(watch, url, watching)
                await self._stop.wait()
                await _stopped(server, units, deciding)
            watching.cancel()
        return self._code

    def _end(self) -> None:
        self._notifier.stopping()
        self._stop.set()

    def _doing(self, watch: Watch, url: str) -> str:
        """Return what the gate does, for the status of its unit."""
        if self._stop.is_set():
            return "stopping: finishing what was forwarded"
        if not watch.tried.is_set():
            return "reading all nodes"
        if watch.trouble:
            return f"nothing is granted: {watch.trouble}"
        return f"serving on {url}, {self._seen(watch)}"

    def _seen(self, watch: Watch) -> str:
        return f"{len(watch.picture.nodes)} nodes, {len(watch.picture.busy)} busy"

    def _watched(self, watching: asyncio.Task[None]) -> None:
        """Stop if the passes have ended by a fault: nothing would ever be released."""
        if not watching.cancelled() and (fault := watching.exception()) is not None:
            log.critical("the gate cannot continue, stopping", exc_info=fault)
            self._code = 1
            self._stop.set()

    async def _check(self, api: LeaseApi) -> None:
        try:
            await pools.check(api, self._settings.rules.pools)
        except pools.PoolError as error:
            raise GateError(str(error)) from None
        except UnreachableError as error:
            log.warning("nothing is granted until Moorage can be reached: %s", error)
        except RefusedError as error:
            raise GateError(f"{shown_url(self._settings.moorage)}: {error}") from None

    async def _ready(self, watch: Watch, url: str, watching: asyncio.Task[None]) -> None:
        """Print the ready line when the first pass has ended, whether it succeeded or not.

        A stop ends the wait.
        """
        tried, stopped = (asyncio.ensure_future(one.wait()) for one in (watch.tried, self._stop))
        await asyncio.wait([watching, tried, stopped], return_when=asyncio.FIRST_COMPLETED)
        if self._stop.is_set():
            return
        rules = self._settings.rules.rules
        shown = f"pool {rules[0].pool}" if len(rules) == 1 else f"{len(rules)} rules"
        if watch.ready.is_set():
            seen = self._seen(watch)
        else:
            seen = "nothing is granted until all nodes have been read"
        self._say(f"moorage: gate {url} -> {shown_url(self._settings.ironic)} ({shown}, {seen})")
        self._notifier.ready()


async def _stopped(server: WebServer, units: Units, deciding: Deciding) -> None:
    """Take no more requests; finish those that Ironic has; refuse those that wait."""
    await server.close_listeners()
    units.stop()
    await deciding.finish(FINISH_SECONDS)
    await units.settled()
    await server.close_connections()
