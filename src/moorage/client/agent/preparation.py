"""Works towards the desired numbers of huge pages, one bounded step at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

from moorage.client.agent.api_types import Amounts, Failure, Observation
from moorage.client.agent.backoff import Backoff
from moorage.client.agent.hugepages import HugePages, Pool, amounts_of, parts_of, provider_of

POLL_SECONDS = 10.0
"""How often to look whether the pools still have what they had."""

SHORT = "hugepages_short"
REFUSED = "hugepages_refused"
UNREADABLE = "hugepages_unreadable"
"""Codes of failures: the kernel found less memory than desired, or refused to change or show it."""


class Goal(NamedTuple):
    """What the server wants, with the generation of its order."""

    desired: Amounts
    generation: int


class Step(NamedTuple):
    """What a step has found, and how many seconds from now the next one is due."""

    seen: Observation
    wait: float


class Preparation:
    """Brings the pools to their desired sizes.

    A *pass* shrinks what is too large, then grows pool after pool in steps of 1 GiB. The first
    time a step obtains less than it asked for, the pass compacts memory and repeats the step;
    after that, a pool that gets less is left until the next pass. A pass that ends with too few
    pages is repeated for ever, after a back-off. Not thread-safe.
    """

    def __init__(
        self, pages: HugePages, agent: UUID, backoff: Backoff, instant: Callable[[], str]
    ) -> None:
        """Prepare the work.

        Args:
            pages: the pools.
            agent: the namespace of the UUIDs of its providers.
            backoff: the delays between passes.
            instant: returns the time of day as text, for failures.
        """
        self._pages = pages
        self._agent = agent
        self._backoff = backoff
        self._instant = instant
        self._desired: Amounts | None = None
        self._done = False
        self._failure: Failure | None = None
        self._since = ""
        self._retry_at = 0.0
        self._working = False
        self._compacted = False
        self._left: set[Pool] = set()
        self._troubles: list[str] = []
        self._refused = False
        self._seen: Observation | None = None

    def step(self, goal: Goal | None, now: float) -> Step:
        """Look at the pools and do at most one step of work; without a goal, only look.

        `now` is in seconds, by a clock that does not jump. If the pools cannot be read any more,
        the last observation remains, with a failure.

        Raises OSError, ValueError: the pools cannot be read the first time.
        """
        try:
            step = self._step(goal, now)
        except (OSError, ValueError) as error:
            if self._seen is None:
                raise
            self._working = False
            delay = self._fail(UNREADABLE, str(error), now)
            step = Step(self._seen._replace(failure=self._failure), min(POLL_SECONDS, delay))
        self._seen = step.seen
        return step

    def _step(self, goal: Goal | None, now: float) -> Step:
        pools = self._pages.pools()
        sizes = {pool: self._pages.actual(pool) for pool in pools}
        wait = POLL_SECONDS
        if goal is not None:
            goals = self._goals(goal.desired, pools)
            if goal.desired != self._desired:
                self._desired = goal.desired
                self._failure, self._since = None, ""
                self._backoff.reset()
                self._begin()
            wait = self._work(goals, sizes, now)
        seen = Observation(
            parts=parts_of(self._agent, pools),
            actual=amounts_of(self._agent, sizes),
            desired_generation=None if goal is None else goal.generation,
            done=self._done,
            failure=self._failure,
        )
        return Step(seen, wait)

    def _goals(self, desired: Amounts, pools: tuple[Pool, ...]) -> dict[Pool, int]:
        """Return the desired size of each pool; pools that no order names are left alone."""
        goals = {}
        for pool in pools:
            wanted = desired.get(provider_of(self._agent, pool), {}).get(pool.size.resource_class)
            if wanted is not None:
                goals[pool] = wanted
        return goals

    def _begin(self) -> None:
        """Begin a pass."""
        self._working, self._compacted = True, False
        self._left, self._troubles, self._refused = set(), [], False

    def _work(self, goals: dict[Pool, int], sizes: dict[Pool, int], now: float) -> float:
        """Do one step and update `sizes`; return the seconds until the next one."""
        if not self._working:
            if all(sizes[pool] == pages for pool, pages in goals.items()):
                self._succeed()
                return POLL_SECONDS
            if now < self._retry_at:
                if self._failure is not None and self._failure.code != UNREADABLE:
                    message = self._message(goals, sizes)
                    self._failure = self._failure._replace(message=message)
                return min(POLL_SECONDS, self._retry_at - now)
            self._begin()
        pool = self._next(goals, sizes)
        if pool is None:
            return self._finish(goals, sizes, now)
        self._resize(pool, goals[pool], sizes)
        return 0.0

    def _next(self, goals: dict[Pool, int], sizes: dict[Pool, int]) -> Pool | None:
        """Return the next pool to resize: shrinking first, because it frees memory for others."""
        wrong = [pool for pool in goals if sizes[pool] != goals[pool] and pool not in self._left]
        return min(wrong, key=lambda pool: sizes[pool] < goals[pool], default=None)

    def _resize(self, pool: Pool, goal: int, sizes: dict[Pool, int]) -> None:
        target = min(goal, sizes[pool] + pool.size.step)
        try:
            sizes[pool] = self._pages.resize(pool, target)
        except OSError as error:
            self._troubles.append(f"node {pool.node}: {error}")
            self._refused = True
            self._left.add(pool)
            sizes[pool] = self._pages.actual(pool)
            return
        if sizes[pool] == target:
            return
        if sizes[pool] > target or self._compacted:
            self._left.add(pool)
            return
        self._compacted = True
        try:
            self._pages.compact()
        except OSError as error:
            self._troubles.append(f"memory cannot be compacted: {error}")

    def _finish(self, goals: dict[Pool, int], sizes: dict[Pool, int], now: float) -> float:
        """End the pass; return the seconds until the next step."""
        self._working, self._done = False, True
        if all(sizes[pool] == pages for pool, pages in goals.items()):
            self._succeed()
            return POLL_SECONDS
        message = self._message(goals, sizes)
        return min(POLL_SECONDS, self._fail(REFUSED if self._refused else SHORT, message, now))

    def _message(self, goals: dict[Pool, int], sizes: dict[Pool, int]) -> str:
        """Return what is missing now, and what went wrong in the last pass."""
        lines = [
            f"node {pool.node} has {sizes[pool]} of {goals[pool]} pages of {pool.size.text}"
            for pool in goals
            if sizes[pool] != goals[pool]
        ]
        return "; ".join([*lines, *self._troubles])

    def _fail(self, code: str, message: str, now: float) -> float:
        """Note a failure; return the seconds until the next pass."""
        delay = self._backoff.next()
        self._retry_at = now + delay
        self._since = self._since or self._instant()
        self._failure = Failure(code, message, self._backoff.attempts, round(delay, 3), self._since)
        return delay

    def _succeed(self) -> None:
        self._failure, self._since, self._retry_at = None, "", 0.0
        self._backoff.reset()
