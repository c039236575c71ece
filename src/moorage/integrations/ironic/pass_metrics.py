"""What every process that passes over Ironic's nodes shows to Prometheus, under the same names."""

from collections import Counter
from collections.abc import Iterable
from time import monotonic

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from moorage.integrations.ironic.reconcile import SYSTEM, Picture
from moorage.integrations.provisioning.host_leases import installation_of
from moorage.integrations.provisioning.rules import value_of


class PassMetrics(Collector):
    """What passes have seen and done."""

    def __init__(self) -> None:
        self.picture = Picture()
        """What the last pass that succeeded has seen."""
        self.ages = True
        """Whether passes go on, so that the age of the last one says something."""
        self._adopted = self._released = self._failed = 0
        self._seen_at = monotonic()

    def passed(self, picture: Picture) -> None:
        """Count a pass that has succeeded."""
        self.picture = picture
        self._adopted += picture.adopted
        self._released += picture.released
        self._seen_at = monotonic()

    def failed(self) -> None:
        """Count a pass that has failed."""
        self._failed += 1

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics; called by the registry."""
        yield from self._nodes()
        yield from self._units()
        for name, meaning, value in (
            ("adopted_nodes", "Nodes that were busy without a unit.", self._adopted),
            ("released_leases", "Leases released after a pass.", self._released),
            ("failed_passes", "Passes that failed.", self._failed),
        ):
            yield CounterMetricFamily(f"moorage_ironic_{name}", meaning, value=value)
        age = GaugeMetricFamily(
            "moorage_ironic_pass_age_seconds", "Time since the last pass that succeeded."
        )
        if self.ages:
            age.add_metric([], monotonic() - self._seen_at)
        yield age

    def _nodes(self) -> Iterable[Metric]:
        picture = self.picture
        yield GaugeMetricFamily("moorage_ironic_nodes", "Nodes.", value=len(picture.nodes))
        busy = GaugeMetricFamily(
            "moorage_ironic_busy_nodes", "Nodes on which Ironic works.", labels=["conductor"]
        )
        at = Counter(value_of(picture.nodes[one], "conductor") or "" for one in picture.busy)
        for conductor, count in at.items():
            busy.add_metric([conductor], count)
        yield busy
        yield GaugeMetricFamily(
            "moorage_ironic_uncounted_nodes",
            "Busy nodes that cannot be counted.",
            value=picture.failed,
        )

    def _units(self) -> Iterable[Metric]:
        units = GaugeMetricFamily("moorage_ironic_units", "Units that nodes have.", labels=["pool"])
        for pool, count in self.picture.units.items():
            units.add_metric([pool], count)
        yield units
        foreign = GaugeMetricFamily(
            "moorage_ironic_foreign_units",
            "Units of nodes that this Ironic never had.",
            labels=["pool", SYSTEM],
        )
        counts: Counter[tuple[str, str]] = Counter()
        for lease in self.picture.foreign:
            for need in lease.needs:
                counts[need.pool, installation_of(lease) or ""] += need.units
        for labels, count in counts.items():
            foreign.add_metric(labels, count)
        yield foreign
