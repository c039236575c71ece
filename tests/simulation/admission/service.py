"""The same world around the real service: on a file, on a failing disk, with a manual clock.

The service's commits go to the auditor as before. After every end of a process the rows are read:
all that was acknowledged must be there (I14), and nothing else except unanswered calls. At the end
the change rows alone must give the same state (I15).
"""

import asyncio
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import apsw
from msgspec import json, structs

from moorage.core.admission.facts import Changes
from moorage.core.admission.model import Lease
from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.service_time import JUMP, Moment, Timeline, When, moment_of
from moorage.service.admission.booking_cases import BookingView
from moorage.service.admission.lease_cases import Sweep as SweepCase
from moorage.service.admission.views import LeaseView
from moorage.service.app import Service
from moorage.store.admission import rows
from moorage.store.admission.changes import KINDS
from moorage.store.api import StoreError
from moorage.store.open import open_engine
from tests.simulation.admission import calls as do
from tests.simulation.admission import cases
from tests.simulation.admission.books import claim
from tests.simulation.admission.clients import SECOND
from tests.simulation.admission.memory import Memory
from tests.simulation.admission.server import Booked, Refused, Seen
from tests.simulation.admission.simulation import START, Simulation
from tests.store.sqlite.faulty_disk import Faulty

UNKNOWN = object()
"""The result of a call is unknown."""

FAULTS = (("write", "error"), ("write", "short"), ("write", "full"), ("sync", "error"))
NAMES = count()


class Hands:
    """The clock of a process, set by the simulation."""

    def __init__(self, world: Simulation) -> None:
        self._world = world

    def now(self) -> Instant:
        return Instant(self._world.now + self._world.wall_ahead)

    def monotonic(self) -> int:
        return self._world.now


class ServiceSimulation(Simulation):
    """One seed around a service. `memory` has what the service has acknowledged."""

    shared = False
    looks_ahead = 0.0

    def __init__(self, seed: int, folder: Path) -> None:
        super().__init__(seed)
        self.until = START + self.random.randrange(20, 50) * SECOND
        self.path = folder / "moorage.sqlite"
        self.loop = asyncio.new_event_loop()
        self.fatal = False
        self.knows = False
        """The process has read the clock in a separate batch."""
        self.unknown: list[do.Call] = []
        """What was in progress when the process died."""
        self.unknown_at = self.now
        """... and when."""
        self.committed: list[tuple[Changes, When]] = []
        self.skew = 0
        """How far service time is ahead of the wall clock."""

    def run(self) -> "ServiceSimulation":
        """Run it, and compare the final state."""
        try:
            super().run()
            for service in list(self.servers):
                self._stop(service)
            try:
                self._compare()
                self._replay()
            except AssertionError as error:
                error.add_note(self.story())
                raise
        finally:
            for service in self.servers:
                self._stop(service)
            self.loop.close()
        return self

    def _start_server(self) -> None:
        if self.path.exists():
            self._compare()
        operation, way = self.random.choice(FAULTS)
        fails = self.memory.capacity_made and self._chance(0.5)
        at = self.random.randrange(400) if fails else -1
        system = Faulty(f"simulated {next(NAMES)}", operation, way, at)
        try:
            service = self.loop.run_until_complete(self._started(system.name))
        except (StoreError, Error) as error:
            self.log.append((self.now, "does not start:", error))
            service = self.loop.run_until_complete(self._started(None))
        self.servers.append(service)
        self.auditor.began = self.now
        self.knows = False

    async def _started(self, system: str | None) -> Service:
        def died(_: Exception) -> None:
            self.fatal = True

        self.fatal = False
        # A short log: so that pages are moved into the file, too, while the disk fails.
        engine = open_engine(f"sqlite:///{self.path}", vfs=system, checkpoint_pages=20)
        try:
            service = await Service.start(
                engine, Hands(self), cases.CLASSES, frozenset(), on_fatal=died
            )
        except BaseException:
            await engine.close()
            raise
        service.transactor.follow(self._follow)
        # Nothing happens by itself: the simulation calls everything.
        await service.admission.sweeper.stop()
        await service.admission.stop()
        if not self.memory.capacity_made:
            await cases.provider_make(service, self.memory.capacity)
            self.memory.capacity_made = True
        return service

    def _all_know(self) -> bool:
        return self.knows

    def _follow(self, changes: Changes, when: When) -> None:
        self.knows = True
        self.committed.append((cases.plain(changes), when))

    def _stop(self, service: Service) -> None:
        self.servers.remove(service)
        try:
            self.loop.run_until_complete(service.stop())
        except StoreError as error:
            self.log.append((self.now, "does not close tidily:", error))

    def _crash(self, server: Service) -> None:
        self._stop(server)
        self.servers.append(server)
        super()._crash(server)

    def _carry_out(self, taken: list[tuple[do.Call, Callable[[Any], None]]]) -> None:
        (service,) = self.servers
        sweeps = [one for one in taken if isinstance(one[0], do.Sweep)]
        for group in ([one for one in taken if one not in sweeps], sweeps):
            if group and not self.fatal:
                self._batch(service, group)
        if self.fatal or self._chance(0.02):
            self.log.append((self.now, "the process ends", "by a failed sync" * self.fatal))
            self._crash(service)

    def _batch(self, service: Service, group: list[tuple[do.Call, Callable[[Any], None]]]) -> None:
        calls = [call for call, _ in group]
        outcomes = self.loop.run_until_complete(self._outcomes(service, calls))
        if self.fatal:
            self.unknown, self.unknown_at = calls, self.now
        changes = self._audit(calls, outcomes)
        self._tell(calls, [_short(outcome) for outcome in outcomes], changes)
        if any(lease and _gives_back(lease) for lease in changes.leases.values()):
            self._sweep(self.memory.wanting())
        for (_, reply), outcome in zip(group, outcomes, strict=True):
            if outcome is not UNKNOWN:
                reply(outcome)

    async def _outcomes(self, service: Service, calls: list[do.Call]) -> list[Any]:
        if isinstance(calls[0], do.Sweep):
            pools = frozenset().union(*(call.pools for call in calls if isinstance(call, do.Sweep)))
            try:
                if pools:
                    await service.transactor.submit(SweepCase(pools=pools))
                await service.admission.sweeper.sweep()
            except Error as error:
                assert error.code == Code.UNAVAILABLE, error
                return [UNKNOWN for _ in calls]
            return [None for _ in calls]
        made = [cases.case_of(call, self.memory, self._new_id) for call in calls]
        answers = await asyncio.gather(
            *(service.transactor.submit(case) for case in made), return_exceptions=True
        )
        return [self._outcome(answer) for answer in answers]

    def _outcome(self, answer: Any) -> Any:
        if isinstance(answer, Error):
            return UNKNOWN if answer.code == Code.UNAVAILABLE else Refused(answer.code)
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, BookingView):
            return Booked(answer.booking.id)
        if not isinstance(answer, LeaseView):
            return None
        lease = cases.plain_lease(answer.lease)
        until = lease.heard_until if lease.state == "granted" else None
        return Seen(lease, None if until is None else until - answer.when.moment.alive)

    def _audit(self, calls: list[do.Call], outcomes: list[Any]) -> Changes:
        """Pass the commits to the auditor; return all of them as one."""
        whole = Changes()
        for call, outcome in zip(calls, outcomes, strict=True):
            lease = outcome.lease if isinstance(outcome, Seen) else None
            if outcome is not UNKNOWN:
                self.auditor.decided(
                    call,
                    None if lease is None else lease.id,
                    refused=isinstance(outcome, Refused),
                    ended=lease is not None and lease.state == "ended",
                )
        swept = isinstance(calls[0], do.Sweep) and outcomes[0] is not UNKNOWN
        one = isinstance(calls[0], do.Sweep) or len(self.committed) <= 1
        assert one, "what comes together is one batch"
        for number, (changes, when) in enumerate(self.committed, 1):
            self.memory.save(changes)
            swept &= number == len(self.committed)
            self._note_skew(when)
            self.auditor.committed(self.now, when.moment, changes, swept=swept, skew=self.skew)
            self.jump_unseen = False
            whole.update(changes)
        self.committed = []
        self.auditor.told = []
        return whole

    def _note_skew(self, when: When) -> None:
        """Note the skew of a batch; time that stands still, lest it run back, is none."""
        stands = when.moment.at == self.auditor.at
        skew = when.moment.at - when.wall
        if not stands or not 0 < skew - self.skew <= JUMP:
            self.skew = skew

    # What stands in the rows.

    def _compare(self) -> None:
        """I14: the rows are what was acknowledged, plus unanswered calls."""
        found, timeline = _rows_read(self.path)
        changes = Changes()
        for name in {*found.pools, *self.memory.pools}:
            if found.pools.get(name) != self.memory.pools.get(name):
                changes.pools[name] = found.pools.get(name)
        known = {**self.memory.leases, **self.memory.ended}
        stored = {**found.leases, **found.ended}
        for key in {*stored, *known}:
            claim(key in stored, "I14", key, "was acknowledged and is gone")
            if stored[key] != known.get(key):
                changes.leases[key] = stored[key]
        for booking in {*found.bookings, *self.memory.bookings}:
            claim(booking in found.bookings, "I14", booking, "was acknowledged and is gone")
            if found.bookings[booking] != self.memory.bookings.get(booking):
                changes.bookings[booking] = found.bookings[booking]
        for name, slots in found.slots.items():
            for slot_name, slot in slots.items():
                if slot != self.memory.slots[name][slot_name]:
                    changes.slots[name, slot_name] = slot
        if changes:
            claim(self.unknown, "I14", "the rows differ from what was acknowledged:", changes)
            self.skew = timeline.skew
            self._take(changes, moment_of(timeline))
        self.unknown = []

    def _take(self, changes: Changes, moment: Moment) -> None:
        """Accept changes of unanswered calls."""
        keys = {(lease.owner, lease.key): key for key, lease in changes.leases.items() if lease}
        for call in self.unknown:
            if isinstance(call, do.Ask | do.Retry):
                ask = call.ask if isinstance(call, do.Retry) else call
                key = keys.get((ask.owner, ask.key))
                if key is not None:
                    self.auditor.decided(call, key, refused=False, ended=True)
            elif isinstance(call, do.Accept):
                new = keys.get((call.owner, call.key))
                if new is not None:
                    self.auditor.decided(call, new, refused=False, ended=True)
            elif isinstance(call, do.Decline):
                if call.lease in changes.leases:
                    self.auditor.decided(call, call.lease, refused=False, ended=False)
            elif isinstance(call, do.Poll | do.Touch):
                lease = changes.leases.get(call.lease)
                if lease is not None and self._may(call):
                    ended = lease.state == "ended"
                    self.auditor.decided(call, call.lease, refused=False, ended=ended)
            else:
                self.auditor.decided(call, None, refused=False, ended=False)
        self.memory.save(changes)
        jumped = self.auditor.jumped
        self.auditor.committed(self.unknown_at, moment, changes, swept=False, skew=self.skew)
        self.auditor.jumped = jumped  # if the clock was set, that was after this

    def _may(self, call: Any) -> bool:
        """Return whether a call is authorised."""
        lease = self.memory.find(call.lease)
        if lease is None or isinstance(call, do.Poll):
            return lease is not None
        return call.owner in (None, lease.owner) and call.token in (None, lease.token)

    def _replay(self) -> None:
        """I15: the change rows give the same state as the rows."""
        found, _ = _rows_read(self.path)
        state: dict[tuple[str, str], Any] = {}
        told = _asked(self.path, "SELECT kind, key, body FROM change ORDER BY revision, n")
        for kind, key, body in told:
            if kind in ("pool", "lease", "slot", "booking"):
                state[kind, key] = None if body is None else json.decode(body, type=KINDS[kind])
        expected: dict[tuple[str, str], Any] = {("pool", n): p for n, p in found.pools.items()}
        for name, slots in found.slots.items():
            expected |= {("slot", f"{name}/{key}"): slot for key, slot in slots.items()}
        for key, lease in (*found.leases.items(), *found.ended.items()):
            expected["lease", key] = lease
        expected |= {("booking", key): one for key, one in found.bookings.items()}
        for at in {*expected, *state}:
            told_of, is_so = state.get(at), expected.get(at)
            if isinstance(told_of, Lease) and isinstance(is_so, Lease):
                told_of = structs.replace(cases.plain_lease(told_of), heard_until=None)
                is_so = structs.replace(is_so, heard_until=None)
            claim(told_of == is_so, "I15", at, "was told as", told_of, "and is", is_so)


def _gives_back(lease: Lease) -> bool:
    return lease.state == "ended" and lease.token is not None and lease.allocations is not None


def _short(outcome: Any) -> Any:
    if isinstance(outcome, Seen):
        return f"{outcome.lease.id[:6]} {outcome.lease.state}"
    return "?" if outcome is UNKNOWN else outcome


def _asked(path: Path, statement: str) -> list[tuple[Any, ...]]:
    """Ask a file that no process has open."""
    file = apsw.Connection(str(path))
    try:
        return file.execute(statement).fetchall()
    finally:
        file.close()


def _rows_read(path: Path) -> tuple[Memory, Timeline]:
    """Read all rows of admission."""
    found = Memory()
    for (body,) in _asked(path, "SELECT body FROM pool"):
        pool = rows.pool_from_body(body)
        found.pools[pool.name] = pool
    for (body,) in _asked(path, "SELECT body FROM slot"):
        slot = rows.slot_from_body(body)
        found.slots.setdefault(slot.pool, {})[slot.name] = slot
    for (body,) in _asked(path, "SELECT body FROM booking"):
        booking = rows.booking_from_body(body)
        found.bookings[booking.id] = booking
    leases = "SELECT body, heard_until FROM lease LEFT JOIN lease_due ON lease_due.lease = lease.id"
    for row in _asked(path, leases):
        lease = cases.plain_lease(rows.lease_from_row(row))
        where = found.ended if lease.state == "ended" else found.leases
        where[lease.id] = lease
    clock = "SELECT skew, downtime, alive_at, outage_ended_at FROM service_clock"
    return found, Timeline(*_asked(path, clock)[0])
