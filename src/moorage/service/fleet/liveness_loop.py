"""Signs of life and silence: exchanges rows with other processes, sweeps agents that are silent.

A sign of life is written nowhere but in the one row of this process. Only a change between fresh,
late and lost is a commit.

Every process keeps what it has heard itself, and learns from the rows of the others. Ages count
only while the service was running: an outage makes nobody older.
"""

import logging
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial

from moorage.core.clock import SECOND, Clock, Instant
from moorage.core.errors import Code, Error
from moorage.core.fleet.facts import Changes
from moorage.core.fleet.liveness import (
    GroupCount,
    Silence,
    grace,
    liveness_after,
    written_at,
)
from moorage.core.fleet.model import Agent, Liveness, State
from moorage.core.fleet.ttl import TtlRange, ttl_of
from moorage.core.service_time import JUMP, When
from moorage.service import errors
from moorage.service.background import Loop
from moorage.service.batch.transactor import Transactor
from moorage.service.batch.use_case import RunPlan
from moorage.service.fleet.directory import Directory
from moorage.service.fleet.liveness_cases import SERVER, GroupRelax, LivenessSweep
from moorage.service.fleet.policy_cases import DrainOver
from moorage.store.api import Engine
from moorage.store.fleet import heard
from moorage.store.fleet.heard import Exchange

EVERY = 5 * SECOND
"""How often a process overwrites its row."""

OUTAGE = 3 * EVERY
"""If no process has written its row for longer, the service was not running."""


class SignsOfLife:
    """The monotonic time at which each agent was last heard of, by its number."""

    def __init__(self, monotonic: Callable[[], int], *, alone: bool) -> None:
        """Create it; `alone`: no other process serves this database."""
        self._monotonic = monotonic
        self._alone = alone
        self._heard: dict[int, int] = {}
        self._began = monotonic()
        self._outage_ended: int | None = None
        self._merged: dict[str, Instant] = {}
        """The time of the last row of each other process."""
        self._exchanged: int | None = None
        """When rows were last exchanged."""

    def note(self, number: int) -> None:
        """Note that an agent was heard of just now."""
        self._heard[number] = self._monotonic()

    def note_age(self, number: int, age: int) -> None:
        """Note that an agent was heard of this long ago, unless it was heard of since."""
        heard = self._monotonic() - age
        if heard > self._heard.get(number, heard - 1):
            self._heard[number] = heard

    def forget(self, number: int) -> None:
        """Forget an agent: another one may get its number."""
        self._heard.pop(number, None)

    def ages(self) -> dict[int, int]:
        """Return how long ago each agent was last heard of."""
        now = self._monotonic()
        return {number: now - heard for number, heard in self._heard.items()}

    def recent(self, age: int) -> set[int]:
        """Return the agents that were heard of at most this long ago."""
        since = self._monotonic() - age
        return {number for number, heard in self._heard.items() if heard >= since}

    def age(self, number: int) -> int:
        """Return how long ago an agent was last heard of; unknown: since this process began."""
        return self._monotonic() - self._heard.get(number, self._began)

    def silence(self, number: int, ttl: int) -> Silence:
        """Return how long an agent is silent, and its grace period after an outage."""
        age = self.age(number)
        ended = self._outage_ended
        since = None if ended is None else self._monotonic() - ended
        return Silence(age, grace(age, since, ttl))

    def merge(self, exchange: Exchange, own: str) -> int:
        """Learn from the rows of all processes; return for how long the service was not running.

        Args:
            exchange: the rows.
            own: the id of this process.
        """
        now = self._monotonic()
        down = self._downtime(exchange, own, now)
        if down and self._heard:
            # Signs of life since the outage keep their time: no time may be in the future.
            self._heard = {number: min(now, heard + down) for number, heard in self._heard.items()}
        self._exchanged = now
        present = {row.process for row in exchange.rows}
        self._merged = {process: at for process, at in self._merged.items() if process in present}
        for row in exchange.rows:
            # A row that is as before tells nothing new; its time may be ahead of a clock set back.
            if row.process == own or self._merged.get(row.process) == row.at:
                continue
            self._merged[row.process] = row.at
            passed = max(0, max(0, exchange.now - row.at) - down)
            for number, age in row.ages.items():
                heard = now - age - passed
                if number not in self._heard or heard > self._heard[number]:
                    self._heard[number] = heard
        return down

    def _downtime(self, exchange: Exchange, own: str, now: int) -> int:
        """Return for how long nobody could be heard.

        A process that did not stop properly may have lived until it had to write its next row. One
        that is alone knows that nobody else was running before it started.
        """
        gaps = [
            max(0, exchange.now - row.at - (0 if row.stopped else EVERY))
            for row in exchange.rows
            if row.process != own
        ]
        first = self._exchanged is None
        if self._exchanged is not None:
            gaps.append(max(0, now - self._exchanged - EVERY))
        if gaps and min(gaps) <= OUTAGE and not (first and self._alone):
            return 0
        if gaps or first:  # without rows, a process before may have been killed before its first
            self._outage_ended = now
        return min(gaps, default=0)

    def is_written(self, at_most: int) -> bool:
        """Return whether rows were exchanged within the last `at_most` microseconds."""
        return self._exchanged is not None and self._monotonic() - self._exchanged <= at_most


SWEEP_MAX = 16
"""Agents that one batch changes: about 4 ms, for which claims wait."""

SWEEP_SECONDS = 1.0
"""How often a process looks for silent agents."""

UNWRITTEN_MAX = 10 * SECOND
"""If this process cannot write its row for longer, no other knows what it hears."""

KEPT = 60 * SECOND
"""How long rows of other processes are kept on a shared database. All have learned from them then;
a process that is alone keeps none."""

KEPT_ALONE = -400 * 86_400 * SECOND
"""The same for a process that is alone: no row but its own is of use, even if it is of the future,
because the wall clock was set back since."""

log = logging.getLogger("moorage.fleet")


class LivenessLoop:
    """Exchanges signs of life, and finds agents that have fallen silent."""

    def __init__(
        self,
        engine: Engine,
        transactor: Transactor,
        directory: Directory,
        clock: Clock,
        ttl_range: TtlRange,
    ) -> None:
        self._engine = engine
        self._transactor = transactor
        self._directory = directory
        self._clock = clock
        self._shared = engine.shared
        self._ttl_range = ttl_range
        self._process = secrets.token_hex(8)
        self.signs = SignsOfLife(clock.monotonic, alone=not engine.shared)
        self._old_ttl = 0
        self._old_ttl_until = 0
        """A longer TTL that agents may still count on, and until when (monotonic)."""
        self._ttl = 0
        self._written_at = 0
        self._ahead = clock.now() - clock.monotonic()
        """By how much the database's clock was ahead of the monotonic one at the last exchange."""
        self._loop = Loop(log, "cannot look for silent agents; trying again", SWEEP_SECONDS)

    async def start(self) -> None:
        """Learn from the rows of all processes, and start. Raises `Error`."""
        await self._exchange()
        self._loop.start(self.look)

    async def stop(self) -> None:
        """Stop, after writing what was heard if the database can take it."""
        await self._loop.stop()
        if not self._directory:
            return
        try:
            await self._exchange(stopped=True)
        except Error as error:
            log.warning("cannot write which agents were heard of: %s", error.message)

    def check_known(self) -> None:
        """Raise UNAVAILABLE if other processes do not know what this one has heard."""
        if not self.signs.is_written(UNWRITTEN_MAX):
            raise Error(
                Code.UNAVAILABLE,
                "This process cannot write signs of life to the database now; try again.",
            )

    def ttl(self) -> int:
        """Return after which silence an agent is late, as it is sent to agents now."""
        ttl = ttl_of(len(self._directory), self._ttl_range)
        if ttl < self._ttl:
            self._keep(self._ttl)
        self._ttl = ttl
        return ttl

    def _keep(self, ttl: int) -> None:
        """Let agents count on a longer TTL until it has passed once."""
        self._old_ttl = max(self._patience(), ttl)
        self._old_ttl_until = self._clock.monotonic() + self._old_ttl

    def _patience(self) -> int:
        """Return the longest TTL that any agent may count on."""
        if self._clock.monotonic() < self._old_ttl_until:
            return max(self._ttl, self._old_ttl)
        return self._ttl

    async def look(self) -> float:
        """Exchange rows if it is time to, and look for silent agents; return the next pause."""
        if self._clock.monotonic() - self._written_at >= EVERY and self._directory:
            await self._exchange()
        await self._sweep()
        await self._relax()
        await self._resume()
        return SWEEP_SECONDS

    async def _exchange(self, *, stopped: bool = False) -> None:
        """Write the row of this process, and learn from those of the others."""
        self.ttl()
        first = not self._written_at
        ages, patience, now = self.signs.ages(), self._patience(), self._clock.now()
        kept = KEPT if self._shared else KEPT_ALONE
        write = partial(heard.heard_write, self._process, ages, patience, now)
        if first and not stopped:
            with errors.translated():
                exchange = await self._engine.read(heard.heard_load(now))
        else:
            plan = RunPlan(lambda: write(kept=kept, stopped=stopped))
            exchange = await self._transactor.submit(plan)
        self._ahead = exchange.now - self._clock.monotonic()
        down = self.signs.merge(exchange, self._process)
        longest = max((row.ttl for row in exchange.rows), default=0)
        if first and not (exchange.rows and all(row.stopped for row in exchange.rows)):
            self._note_written(exchange.now, down)
        if first and longest > self._ttl:
            self._keep(longest)
        self._written_at = self._clock.monotonic()

    def _note_written(self, now: Instant, down: int) -> None:
        """Learn from the agents' rows: they may be later than the last row of a killed process.

        A process that stopped has written all ages, and those do not depend on the wall clock.
        """
        for agent in self._directory.agents():
            written = written_at(agent)
            # A clock that was set back since knows nothing of how long ago that was.
            if written is not None and written <= now + JUMP:
                self.signs.note_age(agent.number, max(0, now - written - down))

    def note(self, changes: Changes, _when: When) -> None:
        """Follow a commit, also of another process: what an agent has written is a sign of life.

        Its time is the database's; the wall clock of this process may be another.
        """
        now = self._clock.monotonic() + self._ahead
        for agent in changes.agents.values():
            written, known = written_at(agent), self._directory.get(agent.uuid)
            if written is not None and (known is None or written_at(known) != written):
                self.signs.note_age(agent.number, max(0, now - written))

    def _silent(self) -> Iterator[tuple[Agent, Liveness]]:
        """Yield agents whose silence makes something else of them."""
        lag = EVERY if self._shared else 0
        ttl = self._patience() + lag
        recent = self.signs.recent(ttl)
        for agent in self._directory.agents():
            if agent.number in recent:  # almost all are
                continue
            if agent.liveness is not Liveness.FRESH and self._is_suspect(agent.group):
                continue  # a suspect network saves it
            if agent.boot_id is None or agent.state is State.DECOMMISSIONED:
                continue
            found = liveness_after(self.signs.silence(agent.number, ttl), ttl)
            late = agent.liveness is Liveness.FRESH and found is not Liveness.FRESH
            lost = agent.liveness is Liveness.LATE and found is Liveness.LOST
            if late or lost:
                yield agent, found

    async def _sweep(self) -> None:
        silent = list(self._silent())
        counts = self._counts() if silent else {}
        for first in range(0, len(silent), SWEEP_MAX):
            await self.sweep(silent[first : first + SWEEP_MAX], counts)

    async def sweep(
        self,
        silent: Iterable[tuple[Agent, Liveness]],
        counts: dict[str, GroupCount],
        *,
        braked: bool = True,
    ) -> None:
        """Apply what silence makes of some agents."""
        found: list[tuple[Agent, Liveness]] = []
        groups = set()
        for agent, liveness in silent:
            lost = agent.liveness is Liveness.LATE and liveness is Liveness.LOST
            if lost and braked and self._is_suspect(agent.group):  # since the sweep before
                continue
            found.append((agent, liveness))
            if lost:
                groups.add(agent.group)
        if found:
            known = {name: counts[name] for name in groups if name in counts}
            await self._submit(LivenessSweep(found, known, braked))

    async def _submit(self, sweep: LivenessSweep) -> None:
        """Carry out a sweep; if a row of it is damaged, agent by agent, without those it needs."""
        try:
            await self._transactor.submit(sweep)
        except errors.DamagedError:
            for one in sweep.silent:
                with suppress(errors.DamagedError):  # the transactor has logged it
                    await self._transactor.submit(LivenessSweep([one], sweep.counts, sweep.braked))

    def _is_suspect(self, name: str) -> bool:
        group = self._directory.group(name)
        return group is not None and group.suspect_since is not None

    def _counts(self) -> dict[str, GroupCount]:
        """Return the members of each group that are in service."""
        tally = self._directory.tally
        return {name: tally.members(name) for name in tally.groups_in_service()}

    async def _resume(self) -> None:
        """Use machines again whose drain has reached its end."""
        now = self._clock.now()
        over = [
            agent
            for agent in self._directory.agents()
            if agent.policy_until is not None and agent.policy_until <= now
        ]
        for agent in over:
            with suppress(errors.DamagedError):
                await self._transactor.submit(DrainOver(agent.uuid, SERVER, known=agent))

    async def _relax(self) -> None:
        """End the suspicion of groups most of whose members are heard of again."""
        suspect = [group.name for group in self._directory.groups() if group.suspect_since]
        if not suspect:
            return
        for name in suspect:
            count = self._directory.tally.members(name)
            with suppress(errors.DamagedError):
                await self._transactor.submit(GroupRelax(name, SERVER, count))
