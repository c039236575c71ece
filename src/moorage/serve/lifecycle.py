"""The life cycle of the server: listen, open the database, announce, serve, finish requests.

Source of the exit codes: docs/reference/cli.md. After a signal the exit code is 0.
"""

import asyncio
import contextlib
import faulthandler
import functools
import logging
import os
import resource
import socket
import sys
from collections.abc import Callable, Iterator
from typing import cast

import uvicorn
from uvloop import new_event_loop

from moorage.config.addresses import Address, networks_parse
from moorage.config.settings import Loaded, Settings, database_address
from moorage.core.clock import SECOND
from moorage.core.counting import counted
from moorage.core.errors import Error
from moorage.core.fleet.ttl import TtlRange
from moorage.serve import logs
from moorage.serve.admin_token import admin_token_create
from moorage.serve.app import Application
from moorage.serve.boskos import BoskosListener
from moorage.serve.certificate import Certificate
from moorage.serve.compose import check_extra, compose
from moorage.serve.doors import Door, DoorError, doors_of
from moorage.serve.files import Announcement, Files
from moorage.serve.front_door import pages_line
from moorage.serve.garbage import freezing, without_collector
from moorage.serve.http.connection_limits import HEALTH_CONNECTIONS_MAX, Bounds
from moorage.serve.http.hosts import Hosts
from moorage.serve.http.listening import Acceptor, ConnectionCounter, HealthPlaces
from moorage.serve.http.memory_budget import MemoryBudgets
from moorage.serve.http.protocol import GuardedProtocol, protocol_for
from moorage.serve.http.proxies import Proxies
from moorage.serve.signals import Signals
from moorage.serve.supervision import Supervision
from moorage.service.app import Service
from moorage.service.chores import Retention
from moorage.service.clock import SystemClock
from moorage.service.feed.saved_catalog import SavedCatalog
from moorage.store.api import StoreError
from moorage.store.open import open_engine
from moorage.systemd.notifier import Notifier
from moorage.systemd.patience import patient

STANDARD_ERROR = 2

FILES_RESERVED = 64
"""File descriptors reserved for other uses than connections."""

HANDSHAKE_SECONDS = 1.0
"""How long TLS handshakes may still take at the end; those of most clients take two round trips."""

ARRIVING_SECONDS = 0.05
"""How long connections that were accepted just before the end may take to send their request. If
systemd holds the socket, later ones wait for the next process."""

SWITCH_SECONDS = 0.001
"""How long another thread may keep the event loop waiting for the interpreter's lock, each time: a
claim needs the lock about half a dozen times."""

log = logging.getLogger("moorage.serve")


class StartError(Exception):
    """The server cannot start. The message is one line and says what to change."""


def run(loaded: Loaded, make_loop: Callable[[], asyncio.AbstractEventLoop] = new_event_loop) -> int:
    """Serve until a signal stops it; return the exit code. Raises StartError, ConfigError.

    `make_loop`: creates the event loop; measurements pass their own.
    """
    logs.configure(loaded.settings.log_format, loaded.settings.log_level)
    for note in loaded.notes:
        log.warning("%s", note)
    if "WATCHDOG_USEC" in os.environ:
        # The watchdog ends a process that hangs by SIGABRT: then the journal shows where it hung.
        faulthandler.enable(file=STANDARD_ERROR)
    with asyncio.Runner(loop_factory=make_loop) as runner:
        return runner.run(_run(loaded))


class Server(uvicorn.Server):
    """uvicorn's server, but it accepts connections itself, and exits with code 0 after a signal."""

    def __init__(
        self,
        config: uvicorn.Config,
        places: ConnectionCounter,
        health_places: HealthPlaces,
        certificate: Certificate,
        handshake_seconds: float,
        on_ready: Callable[[], None],
    ) -> None:
        super().__init__(config)
        self._certificate = certificate
        self._places = places
        self._health_places = health_places
        self._handshake_seconds = handshake_seconds
        self._on_ready = on_ready

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Keep the signal handlers that `_run` has installed before."""
        yield

    def drain(self) -> None:
        """Begin to stop: from now on, each answer ends its connection, and says so.

        Otherwise clients would send their next request when the connection is about to be closed.
        """
        self.should_exit = True
        cast(type[GuardedProtocol], self.config.http_protocol_class).drains = True
        for connection in list(self.server_state.connections):
            cast(GuardedProtocol, connection).end_with_answer()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more, answer requests on connections accepted just before, finish the rest."""
        acceptors = [cast(Acceptor, one) for one in self.servers]
        for acceptor in acceptors:
            acceptor.rest()
        for acceptor in acceptors:
            await acceptor.begun(HANDSHAKE_SECONDS)
        await asyncio.sleep(ARRIVING_SECONDS)
        await super().shutdown(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start listening, then call `on_ready`."""
        make = functools.partial(
            cast(type[GuardedProtocol], self.config.http_protocol_class),
            config=self.config,
            server_state=self.server_state,
            app_state={},
        )
        self.servers = [
            Acceptor(  # type: ignore[misc] # uvicorn only needs to close it
                listener,
                self._places,
                self._health_places,
                make,
                lambda: self._certificate.context,
                self._handshake_seconds,
            )
            for listener in sockets or ()
        ]
        self.started = True
        self._on_ready()


async def _run(loaded: Loaded) -> int:
    settings = loaded.settings
    check_extra(settings)
    certificate = Certificate(settings)
    notifier = Notifier(os.environ, lambda text: log.warning("%s", text))
    stop = Signals(settings, certificate, notifier)
    with contextlib.ExitStack() as stack:
        # Everything here may wait for long: for names of hosts, other processes, or migrations.
        with without_collector(), stop.ending_at_once():
            try:
                settings, doors = doors_of(loaded)
            except DoorError as error:
                raise StartError(str(error)) from None
            for door in doors:
                stack.enter_context(door.listener)
            files, service = await _opened(settings, notifier)
        _favour_loop()
        try:
            with freezing():
                if not stop.asked:
                    await _serve(settings, service, files, doors, stop, certificate)
        finally:
            notifier.stopping()
            with patient(notifier, "stopping: closing the database"):
                files.withdraw()
                await service.stop()
    return 0


async def _opened(settings: Settings, notifier: Notifier) -> tuple[Files, Service]:
    """Open the database. Raises StartError."""
    try:
        files = Files(settings.database)
        with patient(notifier, "opening the database"):
            engine = open_engine(database_address(settings), epoch_file=settings.epoch_file)
            notifier.status("reading the catalog")
            service = await Service.start(
                engine,
                SystemClock(),
                on_fatal=_die,
                queue_max=settings.queue_max,
                candidates_max=settings.candidates_max,
                token_cache_max=settings.token_cache_max,
                ttl_range=_ttl_range(settings),
                backup_directory=settings.backup_directory,
                retention=Retention(
                    changes_max=settings.changes_max,
                    audit_days=settings.audit_days,
                    ended_leases_hours=settings.ended_leases_hours,
                    ended_leases_max=settings.ended_leases_max,
                    changes_bytes_max=settings.changes_bytes_max,
                    ended_leases_bytes_max=settings.ended_leases_bytes_max,
                ),
                saved=None if files.catalog is None else SavedCatalog(engine, files.catalog),
            )
    except (Error, StoreError) as error:
        raise StartError(str(error)) from None
    return files, service


def _favour_loop() -> None:
    """Make computing threads yield to the event loop sooner."""
    sys.setswitchinterval(SWITCH_SECONDS)


async def _serve(
    settings: Settings,
    service: Service,
    files: Files,
    doors: list[Door],
    stop: Signals,
    certificate: Certificate,
) -> None:
    if settings.auth != "noauth2":
        await admin_token_create(service, files)
    boskos = BoskosListener(settings, service) if len(doors) > 1 else None
    if boskos is not None:
        stop.passwords = boskos.reload
        await boskos.start()
    composition = compose(settings, service, lambda: stop.asked, boskos)

    def connections() -> int:
        return sum(len(server.server_state.connections) for server in servers)

    def doing() -> str:
        serving = f"{_urls(settings, doors)[0]}, {counted(connections(), 'connection')}"
        return f"{'stopping' if stop.asked else 'serving'} {serving}"

    supervision = Supervision(stop.notifier, service, composition.readiness, doing)

    def ready() -> None:
        _announce(settings, service, files, doors)
        supervision.begin()

    for danger in dangers(settings, *(door.address for door in doors)):
        log.warning("%s", danger)
    servers = _servers(settings, composition.applications, doors, certificate, ready)
    stop.servers = servers
    stop.tell = service.end_waits
    composition.metrics.connections = connections
    if stop.asked:
        for server in servers:
            server.drain()
    try:
        following = asyncio.create_task(certificate.follow())
        try:
            async with supervision.notifying(), asyncio.TaskGroup() as tasks:
                for server, door in zip(servers, doors, strict=True):
                    tasks.create_task(server.serve(sockets=[door.listener]))
        finally:
            following.cancel()
    finally:
        if boskos is not None:
            await boskos.stop()
        composition.close()


def _urls(settings: Settings, doors: list[Door]) -> list[str]:
    scheme = "https" if settings.tls_cert else "http"
    return [door.address.url(scheme) for door in doors]


def _announce(settings: Settings, service: Service, files: Files, doors: list[Door]) -> None:
    """Write the file by which the command line finds the server, and print the ready line."""
    urls = _urls(settings, doors)
    here = doors[0].reachable.url(urls[0].partition(":")[0])
    files.announce(
        Announcement(
            url=here,
            pid=os.getpid(),
            auth=settings.auth,
            certificate=settings.tls_cert and os.path.abspath(settings.tls_cert),
        )
    )
    for url in urls[1:]:
        sys.stdout.write(f"moorage: {url} is for clients of Boskos and of the lease proxy\n")
    revision = service.index.revision
    sys.stdout.write(f"moorage: serving {urls[0]} ({service.engine.name}, revision {revision})\n")
    if settings.ui:
        sys.stdout.write(pages_line(settings, files.token, here))
    sys.stdout.flush()


def _servers(
    settings: Settings,
    applications: list[Application],
    doors: list[Door],
    certificate: Certificate,
    ready: Callable[[], None],
) -> list[Server]:
    """Create a server for each door. `ready` is called once all of them listen."""
    all_ready = _AllReady(len(doors), ready)
    most = _connections(settings.connections_max, len(doors))
    proxies = Proxies(networks_parse(settings.trusted_proxies))
    held = MemoryBudgets()
    return [
        Server(
            _uvicorn_config(settings, application, door, proxies, held),
            ConnectionCounter(most, settings.connections_per_address_max, proxies),
            HealthPlaces(HEALTH_CONNECTIONS_MAX if application.has_health else 0),
            certificate,
            settings.header_seconds_max,
            all_ready.one,
        )
        for application, door in zip(applications, doors, strict=True)
    ]


class _AllReady:
    """Calls a function once all of several servers listen."""

    def __init__(self, count: int, tell: Callable[[], None]) -> None:
        self._missing = count
        self._tell = tell

    def one(self) -> None:
        self._missing -= 1
        if not self._missing:
            self._tell()


def _uvicorn_config(
    settings: Settings,
    application: Application,
    door: Door,
    proxies: Proxies,
    held: MemoryBudgets,
) -> uvicorn.Config:
    bounds = Bounds(
        header_bytes_max=settings.header_bytes_max,
        header_count_max=settings.header_count_max,
        header_seconds_max=settings.header_seconds_max,
        body_seconds_max=settings.body_seconds_max,
    )
    hosts = Hosts(door.address.host, door.hosts or settings.allowed_hosts)
    config = uvicorn.Config(
        application,
        http=protocol_for(bounds, hosts, proxies, held, application.prompt, application.is_health),
        ws="none",
        lifespan="off",
        loop="none",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=settings.idle_seconds_max,  # type: ignore[arg-type] # a float will do
        timeout_graceful_shutdown=settings.stop_seconds_max,  # type: ignore[arg-type] # so will here
    )
    config.load()
    return config


def _ttl_range(settings: Settings) -> TtlRange:
    return TtlRange(round(settings.fleet_ttl_min * SECOND), round(settings.fleet_ttl_max * SECOND))


def _connections(wanted: int, doors: int) -> int:
    """Raise the limit of open files as far as allowed; return how many connections it permits.

    `wanted` and the result are numbers for each door.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = (wanted + HEALTH_CONNECTIONS_MAX) * doors + FILES_RESERVED
    allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    permitted = (allowed - FILES_RESERVED) // doors - HEALTH_CONNECTIONS_MAX
    if permitted < wanted:
        log.warning(
            "only %d connections per address, although connections_max is %d: the limit of open"
            " files is %d, raise it to %d (LimitNOFILE of a systemd unit, or ulimit -n)",
            *(permitted, wanted, hard, needed),
        )
    return max(permitted, 1)


def _die(error: Exception) -> None:
    """End at once: what was written may be lost, so nothing may be acknowledged any more."""
    log.critical("stopping at once: %s", error)
    logging.shutdown()
    os._exit(1)


def dangers(settings: Settings, main: Address, boskos: Address | None = None) -> Iterator[str]:
    """Yield one line for each dangerous setting.

    Args:
        settings: of the process.
        main: the address on which it listens.
        boskos: the address for clients of Boskos; None: there is none.
    """
    if settings.auth == "keystone" and settings.keystone_insecure:
        yield "keystone_insecure: Keystone's certificate is not verified"
    plain = settings.tls_cert is None and not settings.trusted_proxies
    if not main.loopback:
        if settings.auth == "noauth2":
            yield (
                f"auth is noauth2: anyone who can reach {main.text} is an administrator"
                " without any password"
            )
        elif plain:
            yield (
                f"tokens reach {main.text} unencrypted: set tls_cert and tls_key, or listen on"
                " 127.0.0.1 behind a proxy with TLS"
            )
    if boskos is not None and not boskos.loopback:
        if settings.boskos_password_file is None:
            yield (
                f"boskos_password_file is not set: anyone who can reach {boskos.text} can acquire"
                " and release all resources"
            )
        elif plain:
            yield f"the passwords of Boskos' clients reach {boskos.text} unencrypted"
