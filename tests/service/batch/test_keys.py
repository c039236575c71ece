"""The keys of each case load all rows that its decision and its grants read.

A row that is not loaded looks as if it did not exist, and nothing else notices that. Therefore
random batches are decided twice, at the same moment: with their own keys, and with everything
loaded. Changes, answers and audit rows must be the same. The sweeps between them are compared, too:
the due times must lead to everything that time alone ends or grants.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest
from msgspec import json

from moorage.core.admission.facts import Facts
from moorage.core.admission.facts import Keys as AdmissionKeys
from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Error
from moorage.core.service_time import When
from moorage.service.admission.booking_cases import BookingView
from moorage.service.admission.confirmations import LeasesConfirm, LeaseUndelivered
from moorage.service.admission.lease_cases import (
    LeaseAcquire,
    LeaseRelease,
    LeaseRenew,
    LeaseRetry,
    Sweep,
)
from moorage.service.admission.queries import pools_all
from moorage.service.admission.slots import SlotDrain, SlotsAdd
from moorage.service.admission.views import LeaseView
from moorage.service.batch.batch import Batches, Item, Made
from moorage.service.batch.extra_loads import ExtraLoads
from moorage.service.batch.service_clock import ServiceClock
from moorage.service.batch.use_case import LedgerUseCase, RunPlan, SearchingUseCase, UseCase
from moorage.service.batch.world import Changes, Keys, World
from moorage.service.compat.boskos_cases import Acquire, Release, Reset, Update
from moorage.service.compat.boskos_strict_cases import AcquireStrict, TakeNamed
from moorage.service.compat.lease_proxy import GiveBack
from moorage.store.access.audit import AuditRow
from moorage.store.admission.load import facts_load
from moorage.store.admission.reads import leases_window
from moorage.store.api import Engine, Plan, Transaction
from moorage.store.open import open_engine
from tests.service.drawn_cases import Drawing, Maker
from tests.service.running import ManualClock
from tests.support import cluster
from tests.support.seeds import one_seed, seeds

T = TypeVar("T")

BATCHES = 120
SEEDS = 6
BATCHES_ON_POSTGRES = 60
SEEDS_OF_CONTROL = 24
FOUND_BY = {(LeasesConfirm, "heard"): 7, (LeaseRetry, "asked"): 1, (LeaseUndelivered, "leases"): 1}
"""The seeds that find an omitted part, where it is not the first one; tried before the others."""

STRICTLY = ((AcquireStrict, "ends"), (TakeNamed, "slots"))
"""Cases and parts of keys that occur only where Boskos' behavior is followed to the letter."""

LEASES_MAX = 10_000
BEAT = 10 * SECOND
"""The step in which time passes, as it does for a service that is alive."""

SWEEPS_MAX = 5


class DifferenceError(AssertionError):
    """A decision differs from the one with everything loaded."""


class Loading(UseCase[None]):
    """Loads more than the other cases of its batch, and changes nothing."""

    def __init__(self, keys: AdmissionKeys) -> None:
        self._keys = keys

    def keys(self) -> Keys:
        return Keys(admission=self._keys)

    def decide(self, world: World, when: When) -> Changes:
        return Changes()

    def conclude(self, world: World, when: When) -> None:
        """Return nothing."""


class OmittingKeys(UseCase[Any]):
    """A case that omits a part of its keys."""

    def __init__(self, case: UseCase[Any], part: str) -> None:
        self._case, self._part = case, part

    def keys(self) -> Keys:
        keys = self._case.keys()
        setattr(keys.admission, self._part, None if self._part == "due" else set())
        return keys

    def decide(self, world: World, when: When) -> Changes:
        return self._case.decide(world, when)

    def conclude(self, world: World, when: When) -> Any:
        return self._case.conclude(world, when)

    def audit(self, now: Instant) -> list[AuditRow]:
        return self._case.audit(now)


class Timeless:
    """A transaction without the database's time: the test's clock is the only one."""

    now = None

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    async def run(self, plan: Plan[T], *, aside: bool = False) -> T:
        return await self._transaction.run(plan, aside=aside)

    async def commit(self) -> None:
        await self._transaction.commit()


class Results(NamedTuple):
    """The results of a batch, each as text."""

    values: dict[str, str]
    changed: bool
    unfinished: set[str]
    """Pools whose lines a following batch is to scan."""


class Twice:
    """Decides each batch twice; the decision with everything loaded is committed."""

    def __init__(self, engine: Engine, omitted: tuple[type, str] | None = None) -> None:
        self.engine = engine
        self.omitted = omitted
        self.clock = ManualClock()
        service_clock = ServiceClock(self.clock, alone=not engine.shared)
        self.batches = Batches(self.clock, service_clock, frozenset(), frozenset())
        self.facts = Facts()
        """The whole state as of the beginning of the last batch."""
        self.everything = AdmissionKeys()
        self.accepted: set[type] = set()
        """The kinds of cases of which one was not refused."""

    async def play(self, drawing: Drawing, batches: int) -> None:
        """Set up a world and execute random batches in it. Raises DifferenceError."""
        for make in drawing.first():
            await self.step([make])
        for _ in range(batches):
            await self.wait(drawing.dice.choice((0, 0, 1, 3, 8, 20, 45)) * SECOND)
            drawing.facts = self.facts
            await self.step(drawing.cases())

    async def wait(self, microseconds: int) -> None:
        """Let time pass in steps, and sweep after each until nothing is due any more."""
        while True:
            step = min(BEAT, microseconds)
            self.clock.at += step
            microseconds -= step
            for _ in range(SWEEPS_MAX):
                due = Instant(self.clock.now() + self.facts.timeline.skew)
                if not await self.step([partial(Sweep, due)]):
                    break
            else:
                raise AssertionError(f"after {SWEEPS_MAX} sweeps at the same time more was due")
            if not microseconds:
                return

    async def step(self, makers: Sequence[Maker]) -> bool:
        """Decide a batch twice; return whether it changed anything. Raises DifferenceError."""
        await self._look()
        cases = [make() for make in makers]
        own = None
        if self.omitted is None or any(isinstance(one, self.omitted[0]) for one in cases):
            own = await self._with_own_keys(cases, makers)
        whole = await self._decided([make() for make in makers], self.everything, commits=True)
        if own is not None and own != whole.values:
            differing = {key for key in own | whole.values if own.get(key) != whole.values.get(key)}
            lines = [f"{key}: {own.get(key)}, {whole.values.get(key)}" for key in sorted(differing)]
            raise DifferenceError("\n".join([*map(repr, makers), *lines]))
        return whole.changed

    async def _look(self) -> None:
        names = set(await pools_all(self.engine))
        seen = await self.engine.read_aside(leases_window((0, ""), LEASES_MAX))
        self.everything = AdmissionKeys(
            pools=names,
            ends=names,
            quotas=names,
            calendars=names,
            leases={lease.id for lease in seen.leases},
            asked={(lease.owner, lease.key) for lease in seen.leases},
        )
        async with self.engine.transaction() as transaction:
            self.facts = await transaction.run(facts_load(self.everything))

    async def _with_own_keys(
        self, cases: Sequence[UseCase[Any]], makers: Sequence[Maker]
    ) -> dict[str, str]:
        """Decide a batch, with the lines that it asks a following batch to scan."""
        try:
            found = await self._decided(self._omitting(cases))
            if found.unfinished:
                again = self._omitting([make() for make in makers])
                found = await self._decided(again, AdmissionKeys(pools=found.unfinished))
            return found.values
        except Exception as fault:
            return {"fault": repr(fault)}

    def _omitting(self, cases: Sequence[UseCase[Any]]) -> Sequence[UseCase[Any]]:
        if self.omitted is None:
            return cases
        kind, part = self.omitted
        return [OmittingKeys(one, part) if isinstance(one, kind) else one for one in cases]

    async def _decided(
        self,
        cases: Sequence[UseCase[Any]],
        more: AdmissionKeys | None = None,
        *,
        commits: bool = False,
    ) -> Results:
        """Decide a batch, also with `more` keys."""
        loop = asyncio.get_running_loop()
        cases = [*([] if more is None else [Loading(more)]), *cases]
        loaded = [Item(loop.create_future(), case, case.keys()) for case in cases]
        items = [item for item in loaded if not isinstance(item.work, Loading)]
        async with self.engine.transaction() as transaction:
            made = await self.batches.run(loaded, ExtraLoads(), Timeless(transaction))
            if commits and made.written:
                await transaction.commit()
        if commits:
            self.accepted |= {type(item.work) for item in items if item.refusal is None}
        return self._results(made, items)

    def _results(self, made: Made, items: Sequence[Item]) -> Results:
        changes = made.changes.admission
        assert changes is not None
        values: dict[str, object] = {f"pool {key}": pool for key, pool in changes.pools.items()}
        values |= {f"slot {key}": slot for key, slot in changes.slots.items()}
        values |= {f"lease {key}": lease for key, lease in changes.leases.items()}
        values |= {f"booking {key}": booking for key, booking in changes.bookings.items()}
        values |= {f"template {key}": template for key, template in changes.templates.items()}
        values |= {f"heard {key}": until for key, until in changes.heard.items()}
        values |= {f"postponed {key}": True for key in changes.postponed}
        values |= {f"outcome {n}": one for n, one in enumerate(changes.outcomes)}
        values |= {f"answer {n}": _answer(item) for n, item in enumerate(items)}
        rows = [(row.action, row.target, row.before, row.after) for row in made.rows]
        values |= {"arrivals": changes.arrivals, "audit": rows}
        texts = {key: json.encode(one, order="deterministic") for key, one in values.items()}
        changed = changes.is_published or bool(changes.heard or changes.postponed)
        shown = {key: text.decode() for key, text in texts.items()}
        return Results(shown, changed, changes.unfinished)


def _answer(item: Item) -> object:
    refusal = item.refusal
    if isinstance(item.answer, LeaseView) and refusal is None:
        return (item.answer.lease, item.answer.when.moment)  # each batch has its own stamps
    if isinstance(item.answer, BookingView) and refusal is None:
        return (item.answer.booking, item.answer.when.moment)
    if refusal is None:
        return item.answer
    return f"{refusal.code}: {refusal.message}" if isinstance(refusal, Error) else repr(refusal)


def _kinds(of: type) -> set[type]:
    """Return the classes of cases that are not only base classes."""
    subclasses: list[type] = of.__subclasses__()
    below = [one for one in subclasses if one.__module__.startswith("moorage.")]
    below = [one for one in below if one not in (LedgerUseCase, SearchingUseCase, RunPlan)]
    # See tests/service/fleet, tests/service/ledger/imports and tests/service/ledger/reshapes, and
    # tests/service/admission/test_acting.py for what is alone in its batch.
    elsewhere = {"fleet", "imports", "reshapes", "acting"}
    below = [one for one in below if not elsewhere & {*one.__module__.split(".")}]
    return set().union(*map(_kinds, below)) if below else {of}


async def _play(
    url: str,
    drawing: Drawing,
    omitted: tuple[type, str] | None = None,
    batches: int = BATCHES,
) -> set[type]:
    engine = open_engine(url)
    try:
        twice = Twice(engine, omitted)
        await twice.play(drawing, batches)
        return twice.accepted
    finally:
        await engine.close()


def _played(folder: Path, seeds: Sequence[int]) -> set[type]:
    """Play these seeds on SQLite; return the kinds of cases of which one was not refused."""
    accepted: set[type] = set()
    for seed in seeds:
        drawing = Drawing(seed, strict=bool(seed % 2))
        accepted |= asyncio.run(_play(f"sqlite:///{folder}/{seed}.sqlite", drawing))
    return accepted


@seeds(SEEDS, chunk=2)
def test_each_case_loads_what_it_reads(tmp_path: Path, seeds: Sequence[int]) -> None:
    """On SQLite, in both ways of compatibility with Boskos."""
    assert len(_played(tmp_path, seeds)) > len(_kinds(UseCase)) * 3 // 4


@one_seed
def test_one_seed(tmp_path: Path, seed: int) -> None:
    """The seed of MOORAGE_SEED."""
    _played(tmp_path, [seed])


@pytest.mark.thorough
def test_every_kind_of_case_occurs(tmp_path: Path) -> None:
    """The control: and not only with refusals."""
    assert _played(tmp_path, range(SEEDS)) == _kinds(UseCase)


@pytest.mark.parametrize("strict", [False, True], ids=["safe", "strict"])
def test_each_case_loads_what_it_reads_on_postgres(strict: bool) -> None:
    """The same on PostgreSQL, whose statements differ."""
    drawing = Drawing(SEEDS, strict=strict)
    asyncio.run(_play(cluster.fresh(), drawing, batches=BATCHES_ON_POSTGRES))


@pytest.mark.parametrize(
    ("kind", "part"),
    [
        (LeaseAcquire, "asked"),
        (LeaseRenew, "heard"),
        (LeaseRelease, "leases"),
        (LeaseRetry, "asked"),
        (Acquire, "asked"),
        (AcquireStrict, "ends"),
        (TakeNamed, "slots"),
        (Release, "slots"),
        (Update, "touched"),
        (Reset, "holders"),
        (LeasesConfirm, "heard"),
        (LeaseUndelivered, "leases"),
        (GiveBack, "slots"),
        (Sweep, "due"),
        (SlotsAdd, "touched"),
        (SlotDrain, "pools"),
    ],
)
def test_an_omitted_part_of_the_keys_is_found(tmp_path: Path, kind: type, part: str) -> None:
    """The control: the comparison fails as soon as a case omits a part of its keys."""
    strict = (kind, part) in STRICTLY
    for seed in sorted(range(SEEDS_OF_CONTROL), key=lambda one: one != FOUND_BY.get((kind, part))):
        drawing, url = Drawing(seed, strict=strict), f"sqlite:///{tmp_path}/{seed}.sqlite"
        try:
            asyncio.run(_play(url, drawing, (kind, part)))
        except DifferenceError:
            return
    pytest.fail(f"{kind.__name__} without {part} makes the same decisions")
