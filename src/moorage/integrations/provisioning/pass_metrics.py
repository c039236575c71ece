"""Prometheus metrics of every process that passes over hosts, under names for each system."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Generic, Protocol, TypeVar

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from moorage.integrations.provisioning.hosts import installation_of
from moorage.integrations.provisioning.reconcile import Words
from moorage.wire.admission import Lease


class Seen(Protocol):
    """The observations and actions of a pass that metrics show."""

    @property
    def hosts(self) -> Mapping[str, Any]:
        """All, by UUID."""
        ...

    @property
    def busy(self) -> Collection[str]:
        """The hosts that occupy their units."""
        ...

    @property
    def adopted(self) -> Collection[str]:
        """The hosts that were counted, by UUID."""
        ...

    @property
    def released(self) -> int:
        """How many leases were released."""
        ...

    @property
    def failed(self) -> int:
        """How many are busy and could not be counted."""
        ...

    @property
    def units(self) -> Mapping[str, int]:
        """Units that hosts had when the pass began, by pool."""
        ...

    @property
    def foreign(self) -> Sequence[Lease]:
        """The leases of hosts that were never here."""
        ...


S = TypeVar("S", bound=Seen)


@dataclass(frozen=True)
class Names:
    """How metrics name the hosts of a system.

    `labels` are those of hosts that are busy or wait, with what they say of a host.
    """

    words: Words
    labels: Mapping[str, Callable[[Any], str]] = field(default_factory=dict)

    def of(self, host: Any) -> tuple[str, ...]:
        """Return the values of the labels of a host."""
        return tuple(value(host) for value in self.labels.values())

    def gauge(self, name: str, meaning: str, *labels: str) -> GaugeMetricFamily:
        """Return a gauge without samples."""
        return GaugeMetricFamily(f"moorage_{self.words.system}_{name}", meaning, labels=labels)


class PassMetrics(Collector, Generic[S]):
    """The observations and actions of passes."""

    def __init__(self, names: Names, nothing: S) -> None:
        """Prepare to count; `nothing` is what was seen before the first pass."""
        self._names = names
        self.picture = nothing
        """The observations of the last successful pass."""
        self.ages = True
        """Whether passes go on, so that the age of the last one says something."""
        self._adopted = self._released = self._failed = 0
        self._seen_at = monotonic()
        self._succeeded = False
        self._trouble = ""

    def passed(self, picture: S) -> None:
        """Count a pass that has succeeded."""
        self.picture = picture
        self._adopted += len(picture.adopted)
        self._released += picture.released
        self._seen_at = monotonic()
        self._succeeded, self._trouble = True, ""

    def failed(self, why: str = "") -> None:
        """Count a pass that has failed."""
        self._failed += 1
        self._trouble = why

    def trouble(self, seconds: float) -> str | None:
        """Return why no pass has succeeded for this time, or never; None: one has."""
        age = monotonic() - self._seen_at
        if self._succeeded and age <= seconds:
            return None
        since = f"the last pass that succeeded ended {age:.0f} s ago, and {seconds:.0f} s are"
        text = f"{since} allowed" if self._succeeded else "no pass has succeeded yet"
        return f"{text}: {self._trouble}" if self._trouble else text

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics; called by the registry."""
        host = self._names.words.host
        yield from self._hosts()
        yield from self._units()
        for name, meaning, value in (
            (
                f"adopted_{host}s",
                f"{host.capitalize()}s that were busy without a unit.",
                self._adopted,
            ),
            ("released_leases", "Leases released after a pass.", self._released),
            ("failed_passes", "Passes that failed.", self._failed),
        ):
            yield CounterMetricFamily(
                f"moorage_{self._names.words.system}_{name}", meaning, value=value
            )
        age = self._names.gauge("pass_age_seconds", "Time since the last pass that succeeded.")
        if self.ages:
            age.add_metric([], monotonic() - self._seen_at)
        yield age

    def _hosts(self) -> Iterable[Metric]:
        names, picture = self._names, self.picture
        word = names.words.host
        hosts = names.gauge(f"{word}s", f"{word.capitalize()}s.")
        hosts.add_metric([], len(picture.hosts))
        yield hosts
        busy = names.gauge(f"busy_{word}s", f"{word.capitalize()}s that are busy.", *names.labels)
        # Without labels, none is a number, too.
        counts: Counter[tuple[str, ...]] = Counter({} if names.labels else {(): 0})
        counts.update(names.of(picture.hosts[one]) for one in picture.busy)
        for labels, count in counts.items():
            busy.add_metric(labels, count)
        yield busy
        uncounted = names.gauge(f"uncounted_{word}s", f"Busy {word}s that cannot be counted.")
        uncounted.add_metric([], picture.failed)
        yield uncounted

    def _units(self) -> Iterable[Metric]:
        names = self._names
        units = names.gauge("units", f"Units that {names.words.host}s occupy.", "pool")
        for pool, count in self.picture.units.items():
            units.add_metric([pool], count)
        yield units
        foreign = names.gauge(
            "foreign_units",
            f"Units of {names.words.host}s that {names.words.installation} never had.",
            "pool",
            names.words.system,
        )
        counts: Counter[tuple[str, str]] = Counter()
        for lease in self.picture.foreign:
            for need in lease.needs:
                counts[need.pool, installation_of(lease) or ""] += need.units
        for labels, count in counts.items():
            foreign.add_metric(labels, count)
        yield foreign


class GovernorMetrics(PassMetrics[S]):
    """The metrics of a governor: its passes, and the hosts that wait."""

    def __init__(self, names: Names, nothing: S) -> None:
        """Prepare to count, with a registry of its own."""
        super().__init__(names, nothing)
        self.registry = CollectorRegistry()
        self.registry.register(self)
        self._waiting: Counter[tuple[str, ...]] = Counter()
        """By pool and the labels of hosts."""

    def waits(self, tickets: Mapping[str, Collection[Lease]]) -> None:
        """Show the tickets of hosts, by UUID; those of other installations do not count.

        Call it after `passed`.
        """
        hosts = self.picture.hosts
        self._waiting = Counter(
            (need.pool, *self._names.of(hosts[uuid]))
            for uuid, waiting in tickets.items()
            if uuid in hosts
            for ticket in waiting
            for need in ticket.needs
        )

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics; called by the registry."""
        yield from super().collect()
        names = self._names
        waiting = names.gauge(
            f"waiting_{names.words.host}s",
            f"{names.words.host.capitalize()}s that wait.",
            "pool",
            *names.labels,
        )
        for labels, count in self._waiting.items():
            waiting.add_metric(labels, count)
        yield waiting
