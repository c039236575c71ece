"""The second address, for clients of Boskos and of the lease proxy."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable
from time import monotonic

from prometheus_client.metrics_core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from moorage.config import ConfigError
from moorage.config.settings import Settings
from moorage.core.errors import Error
from moorage.faces.boskos import BoskosFace
from moorage.faces.golang.callers import Passwords
from moorage.faces.leaseproxy import LeaseProxyFace
from moorage.faces.web import Limits
from moorage.serve.app import Application
from moorage.serve.logs import AccessLog
from moorage.serve.metrics import RequestMetrics, cumulated, rest
from moorage.service.app import Service
from moorage.service.compat.boskos import Boskos
from moorage.service.compat.boskos_config import ConfigFileError
from moorage.service.compat.lease_proxy import LeaseProxy
from moorage.service.feed.single_flight import SingleFlight

FACE = "boskos"
LEASE_PROXY = "lease"
"""The first segment of the lease proxy's paths."""

SECONDS = (1, 10, 100, 500, 1000, 1500, 2000)
"""Upper bounds of the buckets, as in Boskos."""

KNOWN_STATES = ("busy", "cleaning", "dirty", "free", "leased", "toBeDeleted", "tombstone")
OTHER = "other"

STRANGE_MAX = 200
"""Series of the histogram for unknown states, whose names clients choose."""

STRANGE_LENGTH_MAX = 63
"""Characters in the name of an unknown state; longer names are counted as `OTHER`."""

Labels = tuple[str, str, str, str]


class BoskosMetrics(Collector):
    """Boskos' metrics, under its own names."""

    def __init__(self, boskos: Boskos, clock: Callable[[], float] = monotonic) -> None:
        self._boskos = boskos
        self._clock = clock
        self._looks = SingleFlight(self._look)
        self._until = 0.0
        self._resources: Counter[tuple[str, str]] = Counter()
        self._types: set[str] = set()
        self._buckets: dict[Labels, list[int]] = {}
        self._seconds: dict[Labels, float] = {}
        self._strange = 0

    def observe(self, kind: str, state: str, dest: str, with_id: bool, seconds: float) -> None:
        """Record how long a client waited to acquire a resource."""
        labels = self._labels(kind, state, dest, str(with_id).lower())
        buckets = self._buckets.setdefault(labels, [0] * (len(SECONDS) + 1))
        buckets[bisect_left(SECONDS, seconds)] += 1
        self._seconds[labels] = self._seconds.get(labels, 0.0) + seconds

    def _labels(self, kind: str, state: str, dest: str, with_id: str) -> Labels:
        """Return the labels of an acquire; a limited number of unknown states keep their names."""
        labels = (kind, state, dest, with_id)
        strange = [one for one in (state, dest) if one not in KNOWN_STATES]
        if not strange or labels in self._buckets:
            return labels
        if self._strange < STRANGE_MAX and max(map(len, strange)) <= STRANGE_LENGTH_MAX:
            self._strange += 1
            return labels
        return (kind, _known(state), _known(dest), with_id)

    async def refresh(self) -> None:
        """Count the resources; concurrent callers share one query.

        Keeps the last counts if the query fails, and for a while after a slow one, because requests
        for metrics are not authenticated.
        """
        if self._clock() >= self._until:
            await self._looks.taken()

    async def _look(self) -> None:
        begun = self._clock()
        try:
            found = await self._boskos.all_counts()
        except Error:
            return
        ended = self._clock()
        if pause := rest(ended - begun):
            self._until = ended + pause
        self._types = {count.pool for count in found}
        self._resources = Counter()
        for count in found:
            self._resources[count.pool, _known(count.state)] += count.slots

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics; called by the registry."""
        resources = GaugeMetricFamily(
            "boskos_resources", "Number of resources recorded in Boskos", labels=["type", "state"]
        )
        for kind in sorted(self._types):
            for state in (*KNOWN_STATES, OTHER):
                resources.add_metric([kind, state], self._resources[kind, state])
        yield resources
        taken = HistogramMetricFamily(
            "boskos_acquire_duration_seconds",
            "Histogram of waiting in seconds for a Boskos' client to acquire a resource.",
            labels=["type", "state", "dest", "has_request_id"],
        )
        for labels, buckets in self._buckets.items():
            taken.add_metric(list(labels), cumulated(buckets, SECONDS), self._seconds[labels])
        yield taken


def _known(state: str) -> str:
    return state if state in KNOWN_STATES else OTHER


class BoskosListener:
    """The services on the second address, with their resources."""

    def __init__(self, settings: Settings, service: Service) -> None:
        self._boskos = Boskos(
            service.engine,
            service.transactor,
            settings.boskos_config,
            strict=settings.boskos_compat == "strict",
            native=settings.boskos_native_leases,
        )
        self._confirmations = service.admission.confirmations
        self._proxy = LeaseProxy(service.admission, service.transactor)
        self._seconds_max = settings.lease_proxy_seconds_max
        self._password_file = settings.boskos_password_file
        self._passwords = Passwords()
        self.reload()
        self.metrics = BoskosMetrics(self._boskos)

    def reload(self) -> None:
        """Read the password file, if one is set. Raises ConfigError: it cannot be used."""
        if self._password_file is not None:
            self._passwords.replace(passwords_read(self._password_file))

    async def start(self) -> None:
        """Apply Boskos' configuration file. Raises ConfigError: it cannot be used."""
        try:
            await self._boskos.start()
        except (ConfigFileError, Error) as error:
            raise ConfigError(f"boskos_config: {error}") from None

    async def stop(self) -> None:
        """Stop watching the configuration file."""
        await self._boskos.stop()

    def application(
        self, limits: Limits, requests: RequestMetrics, access_log: AccessLog | None
    ) -> Application:
        """Return the ASGI application."""
        proxy = LeaseProxyFace(
            self._proxy, self._confirmations, limits, self._passwords, self._seconds_max
        )
        face = BoskosFace(
            self._boskos, self._confirmations, limits, self._passwords, self.metrics.observe
        )
        return Application(face, {LEASE_PROXY: proxy}, requests, access_log, default=FACE)


def passwords_read(path: str) -> list[str]:
    """Return the pairs in a password file: `USER:PASSWORD`, one per line.

    Raises ConfigError, whose message never contains contents of the file.
    """
    try:
        with open(path, encoding="utf-8") as file:
            lines = [line.rstrip("\r\n") for line in file]
    except OSError as error:
        raise ConfigError(f"boskos_password_file: {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"boskos_password_file: {path} is not UTF-8") from None
    for number, line in enumerate(lines, 1):
        user, colon, password = line.partition(":")
        if line and not (user and colon and password):
            raise ConfigError(f"boskos_password_file: {path}: line {number} is not USER:PASSWORD")
    pairs = [line for line in lines if line]
    if not pairs:
        raise ConfigError(f"boskos_password_file: {path} has no line USER:PASSWORD")
    return pairs
