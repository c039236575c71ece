"""Connects the faces and the service to the application that is served."""

import logging
from collections.abc import Awaitable, Callable
from typing import cast

from msgspec import Struct

from moorage.config import ConfigError
from moorage.config.prefixes import prefix_parse
from moorage.config.settings import Settings
from moorage.core.ids import ConsumerId
from moorage.extras import needs
from moorage.faces.auth.local_first import LocalFirst
from moorage.faces.auth.noauth2 import NoAuth2
from moorage.faces.auth.token import TokenAuthenticator
from moorage.faces.dashboard.app import DashboardFace
from moorage.faces.health import PATHS, HealthFace
from moorage.faces.placement.app import PlacementFace
from moorage.faces.placement.policy import Profile
from moorage.faces.placement.routes import first_segments
from moorage.faces.testing import testing_face
from moorage.faces.v1.app import V1Face
from moorage.faces.v1.in_process import InProcessApi
from moorage.faces.v1.prompt import PromptFace
from moorage.faces.web import Authenticator, Limits, Prompt
from moorage.serve.app import Application, Face
from moorage.serve.boskos import BoskosListener
from moorage.serve.front_door import front_door
from moorage.serve.log_writer import standard_error
from moorage.serve.logs import AccessLog
from moorage.serve.metrics import (
    FleetMetrics,
    PastMetrics,
    PoolMetrics,
    ReporterMetrics,
    ServerMetrics,
    StockMetrics,
)
from moorage.serve.mount import Mount
from moorage.serve.openstack_metrics import OpenStackMetrics
from moorage.service.app import Service

log = logging.getLogger("moorage.serve")

NOBODY = ConsumerId("00000000-0000-0000-0000-000000000000")


class Composition(Struct, frozen=True):
    """The applications to serve, with their metrics and access log."""

    application: Application
    second: Application | None
    """For clients of Boskos, on a separate address."""
    readiness: Callable[[], Awaitable[str | None]]
    """Returns why requests should go elsewhere; None: the server is ready."""
    metrics: ServerMetrics
    access_log: AccessLog | None

    @property
    def applications(self) -> list[Application]:
        """All of them, in the order of their addresses."""
        return [self.application, *([] if self.second is None else [self.second])]

    def close(self) -> None:
        """Write the buffered lines of the access log."""
        if self.access_log is not None:
            self.access_log.flush()


def compose(
    settings: Settings,
    service: Service,
    stopping: Callable[[], bool],
    boskos: BoskosListener | None,
) -> Composition:
    """Connect everything according to the settings.

    Args:
        settings: of the process.
        service: the faces call it.
        stopping: returns whether the process was asked to stop.
        boskos: served on the second address; None: there is none.

    Raises:
        ConfigError: the settings need something that is not installed.
    """
    limits = _limits(settings)
    authenticator = _authenticator(settings, service)
    placement = PlacementFace(
        service,
        authenticator,
        policy=settings.policy,
        cors_origin=settings.cors_origin,
        limits=limits,
    )
    metrics = _metrics(service)
    readiness = _readiness(service, stopping)
    text = _metrics_text(metrics, boskos, _openstack_metrics(settings, service, metrics))
    health = HealthFace(readiness, text, service.unsent, service.turns.spared, _remark(service))
    faces: dict[str, Face] = dict.fromkeys(PATHS, health)
    plain = settings.insecure_agents
    faces["v1"] = V1Face(service, authenticator, limits, plain_agents=plain, pages=settings.ui)
    if settings.ui:
        faces["ui"] = DashboardFace(service, authenticator, InProcessApi(service), limits)
    if settings.testing:
        faces["_testing"] = testing_face(
            service.operations.wipe,
            lambda policy, origin: placement.configure(cast(Profile, policy), origin),
            limits,
        )
    access_log = AccessLog(settings.log_format, standard_error()) if settings.access_log else None
    prompts: dict[str, Prompt] = {}
    if settings.auth != "noauth2":
        recognize = TokenAuthenticator(service.access).recognize
        face = PromptFace(service, recognize, limits, plain_agents=plain)
        prompts["v1"] = face.prompt
    application = Application(
        placement,
        faces,
        metrics.requests,
        access_log,
        prompts=prompts,
        mount=_mount(settings, faces),
        root=front_door(placement) if settings.ui else None,
    )
    second = None
    if boskos is not None:
        second = boskos.application(limits, metrics.requests, access_log)
    return Composition(application, second, readiness, metrics, access_log)


def _limits(settings: Settings) -> Limits:
    return Limits(
        body_bytes_max=settings.body_bytes_max,
        bulk_bytes_max=settings.bulk_bytes_max,
        query_bytes_max=settings.query_bytes_max,
        query_parameters_max=settings.query_parameters_max,
    )


def _metrics(service: Service) -> ServerMetrics:
    metrics = ServerMetrics(service)
    metrics.add(PoolMetrics(service.admission))
    metrics.add(StockMetrics(service.chores.stock))
    metrics.add(PastMetrics(service.admission.ended, service.chores.changelog))
    metrics.add(FleetMetrics(service.fleet))
    metrics.add(ReporterMetrics(service.reporters))
    return metrics


def _mount(settings: Settings, faces: dict[str, Face]) -> Mount:
    """Return where the server is mounted. Raises ConfigError."""
    prefix = prefix_parse(settings.path_prefix)
    mount = Mount(prefix, {*faces, *first_segments()})
    if mount.is_own(prefix):
        raise ConfigError(
            f"path_prefix: {prefix} begins like a path of Moorage itself; choose another, such as"
            " /placement"
        )
    return mount


def _openstack_metrics(
    settings: Settings, service: Service, metrics: ServerMetrics
) -> OpenStackMetrics | None:
    most = settings.openstack_metrics_max
    if not most:
        return None
    found = OpenStackMetrics(service.index, service.turns, most)
    metrics.add(found)
    service.chores.add(found.look)
    return found


def _metrics_text(
    metrics: ServerMetrics, boskos: BoskosListener | None, openstack: OpenStackMetrics | None
) -> Callable[[], Awaitable[tuple[list[bytes], str]]]:
    if boskos is not None:
        metrics.add(boskos.metrics)

    async def text() -> tuple[list[bytes], str]:
        if boskos is not None:
            await boskos.metrics.refresh()
        if openstack is not None:
            await openstack.first_look()
        own, kind = metrics.text()
        return [own, *(() if openstack is None else openstack.text)], kind

    return text


def check_extra(settings: Settings) -> None:
    """Raise ConfigError if these settings need an extra that is missing.

    Called before anything is opened. `store/open.py` says what a database needs.
    """
    if settings.auth == "keystone":
        try:
            import moorage.faces.auth.keystone  # noqa: F401 # deferred: it needs an extra
        except ImportError as error:
            raise ConfigError(f"auth: keystone {needs('keystone', error)}") from None


def _authenticator(settings: Settings, service: Service) -> Authenticator:
    if settings.auth == "noauth2":
        return NoAuth2()
    tokens = TokenAuthenticator(service.access)
    if settings.auth == "token":
        return tokens
    from moorage.faces.auth.keystone import KeystoneAccess, KeystoneAuthenticator

    assert settings.keystone_url is not None
    assert settings.keystone_password is not None
    access = KeystoneAccess(
        url=settings.keystone_url,
        username=settings.keystone_username,
        password=settings.keystone_password,
        project=settings.keystone_project,
        domain=settings.keystone_domain,
        admin_project=settings.keystone_admin_project,
        admin_domain=settings.keystone_admin_domain,
        ca_file=settings.keystone_ca_file,
        seconds_max=settings.keystone_seconds_max,
        cache_seconds_max=settings.keystone_cache_seconds_max,
        domain_id=settings.keystone_domain_id,
        insecure=settings.keystone_insecure,
    )
    return LocalFirst(tokens, KeystoneAuthenticator(access, service.clock))


def _remark(service: Service) -> Callable[[], str | None]:
    def remark() -> str | None:
        # Leases on pools are granted all the same, and the import itself must find the server.
        if service.imports.shown is None:
            return None
        return "a ledger is being imported; until then the Placement API answers 503"

    return remark


def _readiness(
    service: Service, stopping: Callable[[], bool]
) -> Callable[[], Awaitable[str | None]]:
    logged = ""

    async def reason() -> str | None:
        nonlocal logged
        if stopping():
            return "the server is stopping"
        if not service.index.loaded:
            return "the index is not loaded"
        try:
            await service.reads.consumer(NOBODY)
            await service.index.current()
        except Exception as error:
            # Not authenticated, so the answer omits the database's address; the log has it, once.
            if str(error) != logged:
                logged = str(error)
                log.warning("not ready: the database cannot be read: %s", error)
            return "the database cannot be read"
        logged = ""
        return None

    return reason
