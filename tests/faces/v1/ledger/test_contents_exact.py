"""What pages show of pools is exactly that of their revision, while others change it.

The feed says what there is at each revision; the answers must say the same, in the same order.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, field
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.client.admission import Admission
from moorage.client.ledger import Ledger
from moorage.client.transport import RefusedError, Transport
from moorage.wire.admission import LeasePage, LeaseWanted, NeedWanted, Pool, PoolWanted
from moorage.wire.changes import Change, LeaseValue, PoolValue
from moorage.wire.pools.reports import PoolContents
from tests.e2e.support.server import serve
from tests.support import cluster

pytestmark = pytest.mark.thorough

WINDOW = 2
"""So few leases and tickets that most answers are cut."""

REFUSED = {"not_waiting", "units_above_limit"}
"""What pools do not permit."""

Step = tuple[str, int, int]

STEPS = st.tuples(
    st.sampled_from(
        ["ask", "ask", "ask", "gang", "forced", "release", "revoke", "first", "priority", "limit"]
    ),
    st.integers(0, 7),
    st.integers(1, 3),
)


class Side:
    """A way to the ledger."""

    def __init__(self, url: str) -> None:
        transport = Transport(url, "admin")
        self.ledger, self.admission = Ledger(transport), Admission(transport)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def sides(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Side]]:
    """Return two ways to a ledger: to one server, or to two with a database in common."""
    with ExitStack() as stack:
        options = ("--auth", "noauth2", "--no-access-log")
        if request.param == "sqlite":
            database = tmp_path_factory.mktemp("contents") / "m.sqlite"
            urls = [stack.enter_context(serve(database, *options)).url] * 2
        else:
            made = cluster.fresh()
            stack.callback(cluster.shared().drop, cluster.database_of(made))
            urls = [stack.enter_context(serve(made, *options)).url for _ in range(2)]
        yield [Side(url) for url in urls]


@dataclass
class Writer:
    """Changes two pools, step by step, and remembers what it has asked for."""

    admission: Admission
    pools: list[str]
    leases: list[str] = field(default_factory=list)

    def play(self, steps: list[Step]) -> None:
        """Do all steps; what the pools do not permit has no effect."""
        for word, number, amount in steps:
            try:
                self._do(word, number, amount)
            except RefusedError as refusal:
                assert refusal.code in REFUSED, refusal

    def _do(self, word: str, number: int, amount: int) -> None:
        pool = self.pools[number % 2]
        if word in {"ask", "gang", "forced"}:
            names = self.pools if word == "gang" else [pool]
            needs = [NeedWanted(pool=name, units=amount) for name in names]
            forced, priority = word == "forced", number - 4
            wanted = LeaseWanted(needs=needs, key=str(uuid4()), priority=priority, force=forced)
            self.leases.append(self.admission.ask(wanted).id)
        elif word == "limit":
            self.admission.pool_put(pool, PoolWanted(limit=amount, pacing=None))
        elif self.leases:
            self._change(word, self.leases[number % len(self.leases)], amount)

    def _change(self, word: str, lease: str, amount: int) -> None:
        if word == "release":
            self.admission.release(lease)
        elif word == "revoke":
            self.admission.revoke(lease, "test")
        elif word == "first":
            self.admission.move(lease)
        else:
            self.admission.move(lease, amount)


@dataclass
class Replay:
    """The pools and leases as the feed tells them, up to a revision."""

    pools: dict[str, PoolValue] = field(default_factory=dict)
    leases: dict[str, LeaseValue] = field(default_factory=dict)

    def take(self, change: Change) -> None:
        """Take the next change."""
        kept: dict[str, object] = self.pools if change.kind == "pool" else self.leases  # type: ignore[assignment] # one or the other, by the kind
        if change.value is None:
            kept.pop(change.key, None)
        else:
            kept[change.key] = change.value

    def of(self, pool: str, state: str) -> list[LeaseValue]:
        """Return a pool's leases by grant, or its tickets as they will be served."""
        found = [
            one
            for one in self.leases.values()
            if one.state == state and any(need.pool == pool for need in one.needs)
        ]
        if state == "granted":
            return sorted(found, key=lambda one: (one.granted_at, one.arrival))
        return sorted(found, key=lambda one: (-one.priority, one.arrival))

    def units(self, pool: str, state: str) -> int:
        """Return how many units of a pool its leases have, or its tickets want."""
        needs = [need for one in self.of(pool, state) for need in one.needs]
        return sum(need.units for need in needs if need.pool == pool)


def replayed(changes: list[Change], revision: int) -> Replay:
    """Return the state as of a revision."""
    replay = Replay()
    for change in changes:
        if change.revision <= revision:
            replay.take(change)
    return replay


def revision_of(as_of: str) -> int:
    """Return the revision of a cursor; it must stand for all of it."""
    _, revision = as_of.split(".")
    return int(revision)


def told(replay: Replay, pool: str) -> tuple[object, ...]:
    """Return what the contents of a pool must be."""
    granted, waiting = replay.of(pool, "granted"), replay.of(pool, "waiting")
    return (
        [one.id for one in granted[:WINDOW]],
        [one.id for one in waiting[:WINDOW]],
        (len(granted), replay.units(pool, "granted")),
        (len(waiting), replay.units(pool, "waiting")),
        (replay.pools[pool].spec.limit, replay.units(pool, "granted"), len(waiting)),
        waiting[0].id if waiting else None,
    )


def shown(one: PoolContents) -> tuple[object, ...]:
    """Return the same of an answer."""
    return (
        [lease.id for lease in one.leases],
        [ticket.id for ticket in one.tickets],
        (one.granted, one.granted_units),
        (one.waiting, one.waiting_units),
        (one.pool.limit, one.pool.occupied, one.pool.waiting),
        None if one.pool.first is None else one.pool.first.id,
    )


@dataclass
class Answers:
    """What was answered while the pools changed."""

    contents: list[PoolContents] = field(default_factory=list)
    leases: list[tuple[str, LeasePage]] = field(default_factory=list)
    pools: list[tuple[str, Pool]] = field(default_factory=list)

    def ask(self, admission: Admission, pool: str) -> None:
        """Ask everything about a pool once."""
        self.contents.append(admission.pool_contents(pool, leases=WINDOW, tickets=WINDOW))
        self.leases.append((pool, admission.leases_page(pool)))
        page = admission.pools_page()
        self.pools += [(page.as_of, one) for one in page.pools if one.name == pool]


def recorded(sides: list[Side], steps: list[Step]) -> tuple[Answers, list[Change]]:
    """Change two new pools from both sides, ask meanwhile, and return the changes as well."""
    begin = sides[0].ledger.providers_page().as_of
    name = f"exact/{uuid4()}"
    pools = [f"{name}/a", f"{name}/b"]
    for pool in pools:
        sides[0].admission.pool_put(pool, PoolWanted(limit=3, pacing=None, priority_max=100))
    writers = [Writer(side.admission, pools) for side in sides]
    answers = Answers()
    with ThreadPoolExecutor() as threads:
        plays = [threads.submit(one.play, steps[n::2]) for n, one in enumerate(writers)]
        while not all(play.done() for play in plays):
            for pool in pools:
                answers.ask(sides[1].admission, pool)
        wait(plays)
    for play in plays:
        play.result()
    for pool in pools:
        answers.ask(sides[1].admission, pool)
    end = f"{name}/end"
    sides[0].admission.pool_put(end, PoolWanted(limit=1))
    changes = []
    for change in sides[1].ledger.watch(begin, ["pool", "lease"]):
        if change.key == end:
            return answers, changes
        changes.append(change)
    raise AssertionError("the feed has ended")


@settings(max_examples=60)
@given(steps=st.lists(STEPS, min_size=4, max_size=40))
def test_every_answer_is_that_of_its_revision(sides: list[Side], steps: list[Step]) -> None:
    """Windows, order, counts and sums are those of the feed at the cursor of the answer."""
    answers, changes = recorded(sides, steps)
    for one in answers.contents:
        replay = replayed(changes, revision_of(one.as_of))
        assert shown(one) == told(replay, one.pool.name)
    for pool, page in answers.leases:
        replay = replayed(changes, revision_of(page.as_of))
        listed = {lease.id: lease.state for lease in page.leases}
        assert page.next is None
        assert listed == {
            one.id: one.state
            for one in replay.leases.values()
            if any(need.pool == pool for need in one.needs)
        }
    for as_of, there in answers.pools:
        replay = replayed(changes, revision_of(as_of))
        waiting = len(replay.of(there.name, "waiting"))
        assert there.occupied == replay.units(there.name, "granted")
        assert there.waiting == waiting


def test_an_answer_of_another_revision_is_noticed(sides: list[Side]) -> None:
    """The control: one revision before each change, the feed tells something else."""
    steps = [("ask", 0, 1), ("ask", 1, 1), ("ask", 2, 3), ("ask", 3, 3), ("ask", 4, 2)]
    answers, changes = recorded(sides, steps)
    last = [one for one in answers.contents if one.pool.name.endswith("/a")][-1]
    assert shown(last) == told(replayed(changes, revision_of(last.as_of)), last.pool.name)
    touching = [
        one.revision
        for one in changes
        if one.kind == "lease" and one.value.needs[0].pool == last.pool.name
    ]
    assert len(set(touching)) == 3
    for revision in touching:
        assert shown(last) != told(replayed(changes, revision - 1), last.pool.name)
