"""A whole run: every service with its fleets, one after another."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from bench import original, report, scenarios
from bench.fleet import Fleet
from bench.measure import Bench, Check, Measurement, Options
from bench.original import Original
from bench.target import Moorage, NotStarted, Storage, Target, Unusable
from tests.support.cluster import Cluster, NoPostgres

CANDIDATES_MAX = 1_000
"""The original's limit for combined groups, without which it does not finish."""


@dataclass(frozen=True)
class Plan:
    """The fleets of a run, and the options of its lines."""

    name: str
    fleets: tuple[Fleet, ...]
    alone: tuple[Fleet, ...]
    """The fleets for Moorage on SQLite only."""
    native: tuple[Fleet, ...]
    """The waiting line and the agents, for Moorage; the original has neither."""
    options: Options

    def describe(self) -> dict[str, object]:
        """Return the plan for the report."""
        return {
            "plan": self.name,
            "fleets": [fleet.name for fleet in self.fleets],
            "fleets_of_moorage_alone": [fleet.name for fleet in (*self.alone, *self.native)],
            **asdict(self.options),
        }


SLOTS = Fleet("slots", 1)
PORTS = Fleet("ports", 40)


def plan_full() -> Plan:
    """Return the plan of docs/performance.md; it takes half an hour, on a slow machine an hour."""
    fleets = (
        *(Fleet("flat", 1_000), Fleet("flat", 15_000)),
        *(Fleet("nested", 1_000), Fleet("nested", 3_100), SLOTS, PORTS),
    )
    native = (Fleet("line", 10_000), Fleet("agents", 10_000))
    return Plan("full", fleets, (Fleet("flat", 100_000),), native, Options())


def plan_million() -> Plan:
    """Return the plan with a million hosts, for Moorage on SQLite only."""
    return Plan("million", (), (Fleet("flat", 1_000_000, prepared=True),), (), Options())


def plan_quick() -> Plan:
    """Return the plan with small fleets and short measurements."""
    fleets = (Fleet("flat", 1_000), Fleet("nested", 200), SLOTS, PORTS)
    options = Options(0.4, 1.5, races=20, reported=1_000)
    return Plan("quick", fleets, (), (Fleet("line", 1_000), Fleet("agents", 1_000)), options)


def plan_tiny() -> Plan:
    """Return the plan that measures everything on the smallest fleets."""
    fleets = (Fleet("flat", 40), Fleet("nested", 10), SLOTS, Fleet("ports", 3))
    options = Options(0.1, 0.2, (1, 4), races=5, reported=20)
    native = (Fleet("line", 40), Fleet("agents", 40))
    return Plan("tiny", fleets, (Fleet("flat", 60, prepared=True),), native, options)


@dataclass(frozen=True)
class Service:
    """A service that can be measured: its name, and a function that creates it on a storage."""

    name: str
    postgres: bool
    make: Callable[[Storage, Fleet], Target]


class Run:
    """Measures all services, one after another.

    Args:
        directory: the folder for all databases.
        plan: what to measure.
        environment: the virtual environment of the original.
        words: measure only services whose names contain one of these; if empty, all.
        show: called with each line as soon as it is measured.
    """

    def __init__(
        self,
        directory: Path,
        plan: Plan,
        environment: Path,
        words: Sequence[str],
        show: Callable[[Measurement | Check], None],
    ) -> None:
        self.directory = directory
        self.plan = plan
        self.environment = environment
        self.words = words
        self.show = show
        self.skipped: list[str] = []

    def services(self) -> Iterator[Service]:
        """Return the selected services, the original first."""
        everything = [
            Service("original, PostgreSQL", True, self._original),
            Service("original, SQLite", False, self._original),
            Service("Moorage, SQLite", False, lambda storage, _: Moorage(storage)),
            Service("Moorage, PostgreSQL", True, lambda storage, _: Moorage(storage)),
            Service("Moorage, PostgreSQL, 2 processes", True, lambda where, _: Moorage(where, 2)),
        ]
        for service in everything:
            if not self.words or any(word in service.name for word in self.words):
                yield service

    def _original(self, storage: Storage, fleet: Fleet) -> Target:
        bound = CANDIDATES_MAX if fleet.shape in ("slots", "ports") else -1
        return Original(storage, self.environment, bound)

    async def measure_all(self) -> None:
        """Measure everything; services that cannot be started are added to `skipped`."""
        missing = original.missing(self.environment)
        for service in self.services():
            print(f"\n{service.name}\n{report.HEAD}", flush=True)
            if missing and service.name.startswith("original"):
                self._skip(service.name, missing)
                continue
            try:
                await self._service(service)
            except (NoPostgres, NotStarted) as error:
                self._skip(service.name, str(error))

    def _skip(self, what: str, why: str) -> None:
        self.skipped.append(f"{what}: {why}")
        print(f"not measured: {why}", flush=True)

    async def _service(self, service: Service) -> None:
        fleets = self.plan.fleets
        if not service.name.startswith("original"):
            fleets += self.plan.native
        if service.name == "Moorage, SQLite":
            fleets += self.plan.alone
        with self._storage(service) as storage_of:
            for number, fleet in enumerate(fleets):
                with service.make(storage_of(number), fleet) as target:
                    bench = Bench(target, fleet, self.plan.options, self.show)
                    try:
                        await scenarios.measure(bench, again=target.peer and number > 0)
                    except (OSError, Unusable) as error:
                        # A service that fails must not end a long run.
                        why = f"failed during the measurement: {error!r}; {target.diagnosis()}"
                        self._skip(f"{service.name}, {fleet.name}", why)

    @contextmanager
    def _storage(self, service: Service) -> Iterator[Callable[[int], Storage]]:
        """Provide a new, empty database for each fleet; on PostgreSQL all in one new cluster."""
        place = self.directory / service.name.replace(", ", "-").replace(" ", "-")
        place.mkdir()
        if not service.postgres:
            yield lambda number: Storage(place, f"fleet{number}")
            return
        with Cluster(place / "cluster", durable=True) as cluster:

            def made(number: int) -> Storage:
                name = f"fleet{number}"
                cluster.create(name)
                return Storage(place, name, cluster)

            yield made
