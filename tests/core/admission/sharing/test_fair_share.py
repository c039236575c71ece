"""Fair share: who has used less lately goes first, and nobody waits for ever."""

import random
from typing import Any

import pytest
from msgspec import json, structs

from moorage.core.admission.model import (
    Pool,
)
from moorage.core.admission.sharing import fair_share
from moorage.core.clock import SECOND
from moorage.core.errors import Code
from moorage.core.limits import (
    DURATION_SECONDS_MAX,
    MAX_INT,
    SHARER_BYTES_MAX,
    SHARERS_MAX,
    WEIGHT_MAX,
)
from moorage.core.pool_values import FairShare, Sharing
from tests.core.admission.build import Refused, World, make_ask
from tests.core.admission.sums import sums_differ

HOUR = 3_600 * SECOND
JOB = 600 * SECOND


def shared(world: World, limit: int = 1, *, half_life: int = HOUR, **more: Any) -> Pool:
    """Create or change pool `p` with a fair share by owner; its leases hold ten minutes."""
    share = {name: more.pop(name) for name in ("by", "weights", "default") if name in more}
    fair = FairShare(**({"by": "owner", "half_life": half_life} | share))
    return world.pool("p", limit, **({"hold": JOB, "ttl": HOUR, "fair_share": fair} | more))


def sharing(world: World) -> Sharing:
    """Return the state of pool `p`'s fair share."""
    found = world.facts.pools["p"].sharing
    assert found is not None
    return found


def debt(world: World, name: str) -> float:
    """Return a sharer's debt in seconds of one unit."""
    shares = fair_share.shares_of(world.facts.pools["p"], world.moment.at)
    return next((one.debt for one in shares if one.name == name), 0) / 1_000


def served(world: World, count: int) -> list[str]:
    """Let one lease of pool `p` end after the other; return the owners of those that start."""
    found = []
    for _ in range(count):
        for key in world.holders():
            world.release(key)
        (holder,) = world.holders()
        found.append(world.lease(holder).owner)
        world.wait(JOB / SECOND / 2)
    return found


def test_two_teams_take_turns_although_one_came_first() -> None:
    """Team A asks for 40 at once; team B comes later and gets every second unit."""
    world = World(page=2)
    shared(world)
    for n in range(40):
        world.ask(f"a{n}", owner="a")
    world.wait(1)
    for n in range(10):
        world.ask(f"b{n}", owner="b")
    owners = served(world, 16)
    assert owners.count("b") == 8, owners
    assert all(owners[n : n + 3].count("b") >= 1 for n in range(14)), owners


def test_a_plain_pool_keeps_the_order_of_arrival() -> None:
    """The control: without a fair share team B waits for all of team A."""
    world = World(page=2)
    world.pool("p", 1, hold=JOB, ttl=HOUR)
    for n in range(40):
        world.ask(f"a{n}", owner="a", roles=frozenset({"operator"}))
    world.ask("b", owner="b")
    assert served(world, 16) == ["a"] * 16
    assert world.facts.pools["p"].sharing is None
    assert {lease.place for lease in world.facts.leases.values()} == {0}


def test_shares_are_as_the_weights() -> None:
    """A sharer with weight 3 gets three times as much."""
    world = World(page=2)
    shared(world, weights={"a": 3})
    for n in range(60):
        world.ask(f"a{n}", owner="a")
        world.ask(f"b{n}", owner="b")
    owners = served(world, 40)
    assert 28 <= owners.count("a") <= 32, owners


def test_sharers_are_projects_owners_or_labels() -> None:
    """A project is `PROJECT/*`; an owner without a project is by itself."""
    share = FairShare("owner", HOUR)
    world = World()
    world.pool("q", 9)
    world.ask("x", {"q": 1}, owner="ci/ann", labels={"team": "red"})
    world.ask("y", {"q": 1}, owner="bob")
    x, y = world.lease("x"), world.lease("y")
    assert fair_share.sharer_of(share, x) == "ci/ann"
    by_project = structs.replace(share, by="project")
    assert fair_share.sharer_of(by_project, x) == "ci/*"
    assert fair_share.sharer_of(by_project, y) == "bob"
    by_label = structs.replace(share, by="label:team")
    assert [fair_share.sharer_of(by_label, one) for one in (x, y)] == ["red", ""]


def test_priority_comes_before_the_share() -> None:
    """A higher priority goes first, whatever its sharer has used."""
    world = World()
    shared(world)
    world.ask("a0", owner="a")
    for n in range(1, 4):
        world.ask(f"a{n}", owner="a", priority=1)
    world.ask("b", owner="b")
    assert served(world, 4) == ["a", "a", "a", "b"]


def test_what_was_used_counts_half_after_the_half_life() -> None:
    """A debt decays while nothing waits, and not while a ticket does."""
    world = World()
    shared(world, limit=5, half_life=60 * SECOND)
    world.ask("b", owner="b")
    for n in range(6):
        world.ask(f"a{n}", owner="a")
    before = debt(world, "a")
    world.wait(120)
    assert debt(world, "a") == before > 0  # two of its tickets still wait
    world.release("a4")
    world.release("a5")
    left = debt(world, "a")
    for minutes in range(1, 4):
        world.wait(60)
        assert debt(world, "a") == pytest.approx(left / 2**minutes, abs=1)
    world.wait(60 * 20)  # whatever its leases have used since
    assert debt(world, "a") < 1


def test_a_withdrawn_ticket_costs_nothing() -> None:
    """The cost of tickets that are withdrawn returns to their sharer."""
    world = World()
    shared(world)
    world.ask("c", owner="c")
    world.ask("b0", owner="b")
    world.ask("a0", owner="a")
    before = debt(world, "a")
    for n in range(1, 6):
        world.ask(f"a{n}", owner="a")
    assert debt(world, "a") == pytest.approx(before + 5 * 600)
    for n in range(1, 6):
        world.release(f"a{n}")
    assert debt(world, "a") == pytest.approx(before)
    assert sharing(world).sharers["a"].waiting == 1


def test_a_lease_costs_what_it_has_used() -> None:
    """A lease that was held for a minute instead of ten costs a minute; a longer one costs more."""
    for held, left in ((60, 60), (590, 590)):
        world = World()
        shared(world, limit=9, half_life=8_000 * HOUR)
        for n in range(4):  # whose share makes the virtual time slower
            world.ask(f"b{n}", owner=f"b{n}")
        for n in range(4):
            world.ask(f"a{n}", owner="a")
        start = 2_400 - debt(world, "a")
        world.wait(held)
        for n in range(4):
            world.release(f"a{n}")
        assert debt(world, "a") == pytest.approx(max(0, 4 * left - start), rel=0.02), held


def test_the_usual_duration_is_learned() -> None:
    """Before the first end a unit costs its hold, later what leases usually last."""
    world = World()
    shared(world, limit=9)
    world.ask("a", owner="a")
    assert world.lease("a").charge == 600_000
    world.wait(30)
    world.release("a")
    world.ask("b", owner="a")
    assert world.lease("b").charge == 30_000
    world.wait(590)
    world.release("b")
    world.ask("c", owner="a")
    assert 30_000 < world.lease("c").charge < 200_000


def test_an_unused_share_is_not_saved() -> None:
    """Who was away for long starts level with the others, not ahead of them."""
    world = World()
    shared(world)
    world.ask("b", owner="b")
    for n in range(30):
        world.ask(f"a{n}", owner="a")
    served(world, 20)
    for n in range(10):
        world.ask(f"late{n}", owner="c")
    assert 3 <= served(world, 10).count("c") <= 7


def test_the_table_of_sharers_is_bounded() -> None:
    """More sharers than a pool remembers: the smallest debts are forgotten, and nothing fails."""
    world = World(page=64)
    shared(world, limit=2)
    for n in range(3 * SHARERS_MAX):
        world.ask(f"t{n}", owner=f"o{n}", hold=JOB if n % 7 else 5 * JOB)
        assert len(sharing(world).sharers) <= SHARERS_MAX
    for _ in range(10):
        for key in world.holders():
            world.release(key)
    assert len(world.holders()) == 2


def test_units_of_forgotten_sharers_count() -> None:
    """All that is occupied is counted, by name or as that of others, until the last lease ends."""
    world = World(page=64)
    most = 3 * SHARERS_MAX
    shared(world, limit=most)
    for n in range(most):
        world.ask(f"t{n}", owner=f"o{n}")
        assert not sums_differ(world.facts)
    assert sharing(world).others == most - SHARERS_MAX
    shares = fair_share.shares_of(world.facts.pools["p"], world.moment.at)
    assert (shares[0].name, shares[0].used) == (fair_share.OTHERS, most - SHARERS_MAX)
    for n in range(most):
        world.ask(f"again{n}", owner=f"o{n}")  # forgotten ones are known again
        world.release(f"t{n}")
        assert not sums_differ(world.facts)
    for n in range(most):
        world.release(f"again{n}")
    assert (sharing(world).others, world.facts.pools["p"].occupied) == (0, 0)
    assert all(one.held == 0 for one in sharing(world).sharers.values())


def test_units_of_before_the_fair_share_count() -> None:
    """They were granted to nobody in particular; so it is after a change of who the sharers are."""
    world = World(page=64)
    world.pool("p", 4, hold=JOB, ttl=HOUR)
    for n in range(2):
        world.ask(f"t{n}", owner="a")
    shared(world, limit=4)
    assert sharing(world).others == 2
    world.ask("t2", owner="a")
    assert (sharing(world).others, sharing(world).sharers["a"].held) == (2, 1)
    shared(world, limit=4, by="project")
    assert sharing(world).others == 3
    for n in range(3):
        assert not sums_differ(world.facts)
        world.release(f"t{n}")
    assert sharing(world).others == 0


def test_the_names_of_sharers_are_bounded_in_bytes() -> None:
    """Long names are cut, and still differ; the row of a pool with the most sharers is small."""
    world = World(page=64)
    shared(world, limit=3 * SHARERS_MAX)
    for n in range(2 * SHARERS_MAX):
        owner = "\N{BULLET}" * 250 + f"/{n}"
        world.ask(f"t{n}", owner=owner)
        name = fair_share.sharer_of(FairShare("owner", HOUR), world.lease(f"t{n}"))
        assert len(name.encode()) <= SHARER_BYTES_MAX
        assert sharing(world).sharers[name].held == 1
    assert len(json.encode(world.facts.pools["p"])) < 20_000
    short = "x" * SHARER_BYTES_MAX
    world.ask("short", owner=short)
    assert short in sharing(world).sharers


def test_nobody_passes_for_all_others() -> None:
    """A label may have the text under which unknown sharers are shown; it is shown otherwise."""
    world = World(page=64)
    world.pool("p", 3)
    world.ask("before")
    shared(world, limit=3, by="label:team")
    for n, team in enumerate([fair_share.OTHERS, "red"]):
        world.ask(f"t{n}", labels={"team": team})
    shares = fair_share.shares_of(world.facts.pools["p"], world.moment.at)
    assert [(one.name, one.used) for one in shares if one.name == fair_share.OTHERS] == [("*", 1)]
    assert len({one.name for one in shares}) == 3


def test_a_weight_for_a_longer_name_is_refused_with_the_short_one() -> None:
    """The name by which the pool shows that sharer can have a weight."""
    world, owner = World(), "x" * (SHARER_BYTES_MAX + 1)
    with Refused(Code.INVALID):
        shared(world, weights={owner: 2})
    world.pool("q", 1)
    world.ask("t", {"q": 1}, owner=owner)
    name = fair_share.sharer_of(FairShare("owner", HOUR), world.lease("t"))
    shared(world, weights={name: 2})
    world.ask("u", owner=owner)
    (share,) = fair_share.shares_of(world.facts.pools["p"], world.moment.at)
    assert (share.name, share.weight) == (name, 2)


def test_a_huge_pool_does_not_reach_the_end_of_the_tags() -> None:
    """All units for the longest hold cost less than the range of tags, and sharers take turns."""
    world = World(page=64)
    longest = DURATION_SECONDS_MAX * SECOND
    shared(world, limit=MAX_INT, hold=longest)
    for n in range(4):
        world.ask(f"a{n}", {"p": MAX_INT}, owner="a")
    world.ask("b", {"p": MAX_INT}, owner="b")
    assert max(lease.place for lease in world.facts.leases.values()) < fair_share.TAG_MAX
    assert served(world, 4) == ["a", "b", "a", "a"]


def test_tags_begin_again_once_the_line_is_empty() -> None:
    """After many years of work the virtual time is small again, and debts are as without them."""
    debts = []
    for now in (0, fair_share.REBASED):
        world = World(page=64)
        shared(world)
        world.ask("holder", owner="c")
        world.ask("first", owner="c")
        _later(world, now)
        for n in range(3):
            world.ask(f"a{n}", owner="a")
        world.ask("b", owner="b")
        assert world.lease("a2").place >= now
        assert served(world, 5) == ["c", "a", "b", "a", "a"]
        assert sharing(world).now < fair_share.REBASED
        world.ask("a3", owner="a")
        assert world.lease("a3").place < fair_share.REBASED
        debts.append([debt(world, name) for name in "abc"])
    assert debts[0] == debts[1]
    assert debts[0][0] > 0


def test_arrival_decides_at_the_end_of_the_tags() -> None:
    """A line that has not been empty for an age: the order is that of arrival, then as ever."""
    world = World(page=64)
    shared(world)
    world.ask("holder", owner="c")
    world.ask("first", owner="c")
    _later(world, fair_share.TAG_MAX)
    for n in range(3):
        world.ask(f"a{n}", owner="a")
        world.ask(f"b{n}", owner="b")
    assert served(world, 7) == ["c", "a", "b", "a", "b", "a", "b"]
    assert sharing(world).now < fair_share.REBASED
    for n in range(3):
        world.ask(f"a{n}+", owner="a")
    world.ask("late", owner="d")
    assert served(world, 2) == ["a", "d"]


def _later(world: World, more: int) -> None:
    """Let the virtual time of pool `p` be larger, with the debts of all sharers as they are."""
    pool, now = world.facts.pools["p"], sharing(world)
    sharers = {
        name: structs.replace(one, finish=min(fair_share.TAG_MAX, one.finish + more))
        for name, one in now.sharers.items()
    }
    risen = min(fair_share.TAG_MAX, now.now + more)
    later = structs.replace(now, now=risen, last=max(now.last, risen), sharers=sharers)
    world.facts.pools["p"] = structs.replace(pool, sharing=later)


def test_a_request_for_more_pools_is_refused() -> None:
    """Tags of several pools cannot be compared, so a gang over one of them is refused."""
    world = World()
    shared(world)
    world.pool("q", 3)
    with Refused(Code.INVALID) as refused:
        world.ask("g", {"p": 1, "q": 1})
    assert "can name no other pool" in refused.message
    world.ask("x", {"q": 1})
    assert world.states() == {"x": "g"}


@pytest.mark.parametrize(
    "share",
    [
        FairShare("team", HOUR),
        FairShare("label:", HOUR),
        FairShare("owner", 0),
        FairShare("owner", HOUR, {"a": 0}),
        FairShare("owner", HOUR, {"a": WEIGHT_MAX + 1}),
        FairShare("owner", HOUR, default=0),
        FairShare("owner", HOUR, {"a" * 999: 1}),
        FairShare("label:team", HOUR, {fair_share.OTHERS: 1}),
        FairShare("owner", HOUR, {f"o{n}": 1 for n in range(SHARERS_MAX + 1)}),
    ],
    ids=lambda share: f"{share.by} {share.half_life} {len(share.weights)} {share.default}",
)
def test_invalid_fair_shares_are_refused(share: FairShare) -> None:
    """Sharers, half-life and weights have bounds."""
    with Refused(Code.INVALID):
        World().pool("p", 1, fair_share=share)


def test_a_fair_share_can_be_turned_off_and_on_again() -> None:
    """Those who wait keep their order; who comes later goes behind them, until none is left."""
    world = World()
    shared(world)
    for n in range(3):
        world.ask(f"a{n}", owner="a")
    world.ask("b", owner="b")
    world.pool("p", 1, hold=JOB, ttl=HOUR)
    world.ask("c0", owner="c")
    world.pool("q", 1, ttl=HOUR)
    with Refused(Code.INVALID):  # some tickets still have tags
        world.ask("g", {"p": 1, "q": 1}, owner="c")
    assert served(world, 4) == ["a", "b", "a", "c"]
    assert world.facts.pools["p"].sharing is None
    world.ask("d0", owner="d")
    assert world.lease("d0").place == 0
    world.ask("g", {"p": 1, "q": 1}, owner="e")
    shared(world)
    world.ask("f", owner="f")
    assert served(world, 3) == ["d", "e", "f"]


def test_a_retry_keeps_its_tag() -> None:
    """In a pool with `on_retry: keep` a requeued lease waits at its old place, and is charged."""
    world = World()
    shared(world)
    for n in range(3):
        world.ask(f"a{n}", owner="a")
    world.ask("b", owner="b")
    old = world.lease("a1").place
    world.retry("a1", make_ask("r", {"p": 1}, owner="a"))
    assert (world.lease("r").place, sharing(world).sharers["a"].waiting) == (old, 2)
    world.retry("a0", make_ask("s", {"p": 1}, owner="a"))
    assert world.states()["s"] == "g"
    assert sharing(world).sharers["a"].held == 1


def test_an_operator_moves_a_ticket_to_the_front() -> None:
    """A move changes the priority, whatever the tags are."""
    world = World(page=3)
    shared(world)
    for n in range(5):
        world.ask(f"a{n}", owner="a")
    world.ask("b", owner="b")
    world.move("a4")
    for key in world.holders():
        world.release(key)
    assert world.holders() == ["a4"]
    assert served(world, 2) == ["a", "b"]


class Check:
    """Random commands on one pool, with checks after each."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.world = World(page=self.random.choice([1, 3]))
        self.weights = {"a": 3, "b": 2}
        shared(
            self.world,
            self.random.choice([1, 2, 5]),
            half_life=self.random.choice([5, 600, 36_000]) * SECOND,
            weights=self.weights,
        )
        self.count = 0
        self.now = 0
        self.overtaken: dict[str, list[int]] = {}
        """By waiting ticket: the weighted cost granted to later ones before the virtual time had
        reached its tag, and the most that may be."""
        self.arrived: dict[str, int] = {}
        """The virtual time at which each ticket was made."""

    def run(self) -> None:
        for _ in range(120):
            act = self.random.choice([self.ask, self.ask, self.ask, self.end, self.end, self.wait])
            before = {key for key, state in self.world.states().items() if state == "w"}
            act()
            self.check(before)

    def ask(self) -> None:
        self.count += 1
        name = f"t{self.count}"
        owner = self.random.choice("aaaabbcd") if self.count % 3 else f"new{self.count}"
        hold = self.random.choice([60, 600, 3_000]) * SECOND
        now = sharing(self.world).now
        self.world.ask(name, owner=owner, hold=hold)
        place = self.world.lease(name).place
        assert place >= now, "a ticket is before the virtual time"
        # Sharers that come and go have weight 1; at most `SHARERS_MAX` of them are remembered.
        most = (place - now) * (sum(self.weights.values()) + SHARERS_MAX)
        self.overtaken[name] = [0, most]
        self.arrived[name] = now

    def end(self) -> None:
        live = [key for key, state in self.world.states().items() if state in "wg"]
        if live:
            self.world.release(self.random.choice(live))

    def wait(self) -> None:
        self.world.wait(self.random.choice([1, 30, 500]))

    def check(self, waited: set[str]) -> None:
        pool, states = self.world.facts.pools["p"], self.world.states()
        now = sharing(self.world)
        assert now.now >= self.now, "the virtual time falls"
        was, self.now = self.now, now.now
        leases = list(self.world.facts.leases.values())
        for name, one in now.sharers.items():
            mine = [lease for lease in leases if lease.owner == name]
            assert one.waiting == sum(lease.state == "waiting" for lease in mine), name
            assert one.held == sum(lease.state == "granted" for lease in mine), name
        line = sorted((one.place, one.arrival, one.id) for one in leases if one.state == "waiting")
        # Without another batch between, a grant passes over nobody: each needs one unit.
        for lease in leases:
            if lease.state != "granted" or lease.granted_at != self.world.now or not line:
                continue
            if lease.id in waited:
                assert (lease.place, lease.arrival) < line[0][:2], "a ticket was passed over"
        self._bound(states, was)
        assert not pool.waiting or pool.occupied == pool.spec.limit

    def _bound(self, states: dict[str, str], was: int) -> None:
        """What later tickets get before one that waits stays within its bound.

        Once the virtual time has reached its tag, none goes before it that is made after that.
        """
        for name in [key for key in self.overtaken if states[key] != "w"]:
            lease = self.world.lease(name)
            del self.overtaken[name]
            if lease.granted_at is None:
                continue
            cost = lease.charge * self.weights.get(lease.owner, 1)
            for key, sums in self.overtaken.items():
                other = self.world.lease(key)
                if other.arrival < lease.arrival:
                    assert self.arrived[name] < other.place, f"{key} is overtaken too late"
                    if was < other.place:
                        assert sums[0] <= sums[1], f"{key} is overtaken by too much"
                        sums[0] += cost


@pytest.mark.parametrize("seed", range(60))
def test_random_commands(seed: int) -> None:
    """The virtual time never falls, counts are right, and no ticket is overtaken for ever."""
    Check(seed).run()


def test_newcomers_without_end_do_not_starve_a_debtor() -> None:
    """New sharers come for ever, each without a debt: the virtual time rises all the same."""
    world = World(page=4)
    shared(world, half_life=SECOND)
    for n in range(8):
        world.ask(f"a{n}", owner="a")
    last = world.lease("a7")
    for n in range(2_000):
        world.ask(f"n{n}", owner=f"new{n}")
        (holder,) = world.holders()
        world.wait(10)
        world.release(holder)
        if world.lease("a7").state != "waiting":
            break
    assert world.lease("a7").state != "waiting", last
