"""Members of groups of reporters: who is live, who is fenced, what observers see."""

from uuid import UUID

import pytest
from msgspec.structs import replace

from moorage.core.clock import SECOND, Instant
from moorage.core.errors import Code
from moorage.core.fleet import members, ownership
from moorage.core.fleet.facts import Changes, Facts
from moorage.core.fleet.members import is_live, join, late_at, leave, observe
from moorage.core.fleet.reporters import Member, Pass
from moorage.core.ids import ProviderId
from moorage.core.limits import MEMBERS_MAX, PAST_INSTANCES_MAX, PINS_MAX
from moorage.core.service_time import Moment, When
from tests.core.ledger.build import Refused, provider_id

TTL = 30 * SECOND
BEGIN = 1_000 * SECOND


def when(seconds: float = 0, *, downtime: float = 0, outage_ended: float | None = None) -> When:
    """Return a time, in service time since the begin of a test."""
    at = Instant(BEGIN + round(seconds * SECOND))
    ended = Instant(0) if outage_ended is None else Instant(BEGIN + round(outage_ended * SECOND))
    return When(Moment(at, Instant(at - round(downtime * SECOND)), ended), at, at)


def instance(n: int) -> str:
    """Return the n-th instance."""
    return str(UUID(int=n))


def known() -> Facts:
    """Return facts without reporters."""
    return Facts(epoch=3)


def joined(facts: Facts, name: str, n: int, now: When | None = None, ttl: int = TTL) -> Member:
    """Let a member join group `g` as its n-th instance; return it."""
    facts.apply(join(facts, now or when(), "g", name, instance(n), ttl))
    return facts.members["g", name]


def live(facts: Facts, now: When) -> list[str]:
    """Return the live members of all groups."""
    return members.live(facts.members.values(), now.moment)


def test_a_new_token_for_the_same_instance() -> None:
    """When it asks for one, or after its silence: it joined when it did, and said what it said."""
    facts = known()
    first = joined(facts, "a", 1)
    facts.apply(Changes(passes={("g", "a"): Pass(Instant(BEGIN), 7, {})}))
    for seconds, renew in ((10, True), (60, False)):
        facts.apply(join(facts, when(seconds), "g", "a", instance(1), TTL, renew=renew))
        one = facts.members["g", "a"]
        assert (one.joined_at, one.last_pass) == (first.joined_at, Pass(Instant(BEGIN), 7, {}))
    assert (first.token, one.token) == ("3.1", "3.3")
    assert joined(facts, "a", 2, when(61)).last_pass is None


def test_a_new_token_in_a_new_epoch() -> None:
    """After a restore, what a member has reported may be missing: it must learn of that, once."""
    facts = known()
    before = joined(facts, "a", 1)
    facts.epoch = 33  # begins with the same digit
    after = joined(facts, "a", 1)
    assert (before.token, after.token, after.instance) == ("3.1", "33.2", before.instance)
    assert joined(facts, "a", 1, when(1)).token == "33.2"


def test_a_member_is_live_for_its_ttl() -> None:
    """It is live until its TTL is over, however the wall clock jumps."""
    facts = known()
    one = joined(facts, "a", 1)
    assert live(facts, when(29.9)) == ["a"]
    assert live(facts, when(30)) == []
    assert late_at(one, when().moment) == BEGIN + TTL
    facts.apply(join(facts, when(20), "g", "a", instance(1), TTL))
    assert live(facts, when(49.9)) == ["a"]


def test_to_stay_is_no_change_for_followers() -> None:
    """A renewal only moves the deadline, never backwards; another TTL is a change."""
    facts = known()
    one = joined(facts, "a", 1)
    again = join(facts, when(5), "g", "a", instance(1), TTL)
    assert (again.heard, again.is_logged) == ({("g", "a"): BEGIN + TTL + 5 * SECOND}, False)
    assert join(facts, when(-5), "g", "a", instance(1), TTL).heard == {("g", "a"): BEGIN + TTL}
    longer = join(facts, when(5), "g", "a", instance(1), 2 * TTL)
    assert longer.is_logged
    assert longer.members["g", "a"] == replace(
        one, ttl=2 * TTL, heard_until=when(65).moment.at, updated_at=when(5).stamp
    )


def test_an_outage_is_not_silence() -> None:
    """Time in which the service is down does not count, and a member then has one TTL to return."""
    facts = known()
    one = joined(facts, "a", 1)
    # Down from second 10 to 110: 20 seconds of its TTL are left, but it gets the whole one.
    back = when(110, downtime=100, outage_ended=110)
    assert late_at(one, back.moment) == when(140).moment.at
    assert is_live(one, when(139.9, downtime=100, outage_ended=110).moment)
    assert not is_live(one, when(140, downtime=100, outage_ended=110).moment)


def test_an_outage_revives_nobody() -> None:
    """A member that was late before the service stopped stays late: others have its nodes."""
    facts = known()
    one = joined(facts, "a", 1)
    assert not is_live(one, when(30).moment)
    assert not is_live(one, when(32, downtime=2, outage_ended=32).moment)
    # Down from second 29, when it still had a second.
    assert is_live(one, when(32, downtime=3, outage_ended=32).moment)


def test_restarts_do_not_postpone_for_ever() -> None:
    """With an outage every few seconds, a silent member is late after its TTL of alive time."""
    facts = known()
    one = joined(facts, "a", 1)
    alive = down = 0.0
    while is_live(one, when(alive + down, downtime=down, outage_ended=alive + down).moment):
        alive += 2
        down += 60
        assert alive <= 32
    assert alive >= 30


def test_a_new_instance_fences_the_old_one() -> None:
    """It has a higher token; all of the old one is refused, also that it joins again."""
    facts = known()
    first = joined(facts, "a", 1)
    second = joined(facts, "a", 2)
    assert (first.token, second.token) == ("3.1", "3.2")
    assert members.check_current(facts, "g", "a", second.token) == second
    with Refused(Code.FENCED):
        members.check_current(facts, "g", "a", first.token)
    with Refused(Code.FENCED):
        join(facts, when(), "g", "a", instance(1), TTL)
    with Refused(Code.FENCED):
        leave(facts, "g", "a", instance(1))
    with Refused(Code.FENCED):
        members.check_current(facts, "g", "b", second.token)


def test_tokens_are_never_used_again() -> None:
    """A member that has left and joins again, and one of a later epoch, get other tokens."""
    facts = known()
    first = joined(facts, "a", 1)
    facts.apply(leave(facts, "g", "a", instance(1)))
    assert not leave(facts, "g", "a", instance(1))
    assert live(facts, when()) == []
    second = joined(facts, "a", 1)
    facts.epoch = 4
    third = joined(facts, "a", 3)
    assert [first.token, second.token, third.token] == ["3.1", "3.2", "4.3"]


def test_past_instances_are_bounded() -> None:
    """The last ones are remembered."""
    facts = known()
    for n in range(1, PAST_INSTANCES_MAX + 4):
        joined(facts, "a", n)
    assert len(facts.members["g", "a"].past) == PAST_INSTANCES_MAX


def test_members_are_bounded_and_forgotten() -> None:
    """A full group refuses a new member; members that were silent for a day make room."""
    facts = known()
    for n in range(MEMBERS_MAX):
        joined(facts, f"m{n}", n + 1)
    with Refused(Code.LIMIT_EXCEEDED):
        joined(facts, "more", 1_000)
    joined(facts, "m0", 2_000)
    day = when(24 * 3_600 + 31)
    joined(facts, "more", 1_000, day)
    assert [*facts.members] == [("g", "more")]


@pytest.mark.parametrize(
    ("group", "name", "which", "ttl"),
    [
        ("", "a", 1, TTL),
        ("a/b", "a", 1, TTL),
        ("A", "a", 1, TTL),
        ("..", "a", 1, TTL),
        ("g", "", 1, TTL),
        ("g", "a/b", 1, TTL),
        ("g", "a|b", 1, TTL),
        ("g", ".", 1, TTL),
        ("g", "a", 1, 4 * SECOND),
        ("g", "a", 1, 3_601 * SECOND),
        ("g", "a", -1, TTL),
    ],
)
def test_invalid_members(group: str, name: str, which: int, ttl: int) -> None:
    """Names are parts of addresses, instances UUIDs, and TTLs bounded."""
    wanted = instance(which) if which > 0 else "x"
    with Refused(Code.INVALID):
        join(known(), when(), group, name, wanted, ttl)


def test_observed_members() -> None:
    """A list replaces the last one; an equal one is no change; an older one is refused."""
    facts = known()
    facts.apply(observe(facts, when(), "g", ["b", "a", "b"], Instant(BEGIN), ""))
    assert facts.reporter_groups["g"].observed == ("a", "b")
    same = observe(facts, when(5), "g", ["a", "b"], Instant(BEGIN + 1), "")
    assert (same.seen, same.is_logged) == ({"g": BEGIN + 1}, False)
    facts.apply(same)
    with Refused(Code.STALE_REPORT):
        observe(facts, when(5), "g", ["a"], Instant(BEGIN), "")
    with Refused(Code.INVALID):
        observe(facts, when(5), "g", ["a"], when(66).wall, "")
    facts.apply(observe(facts, when(5), "g", [], when(5).wall, ""))
    assert not facts.reporter_groups["g"].observed


def test_an_observer_that_saw_an_error_removes_nobody() -> None:
    """An empty list with an error is refused; one with members counts."""
    facts = known()
    facts.apply(observe(facts, when(), "g", ["a"], Instant(BEGIN), ""))
    with Refused(Code.OBSERVER_FAILED):
        observe(facts, when(), "g", [], Instant(BEGIN), "timeout")
    facts.apply(observe(facts, when(), "g", ["b"], Instant(BEGIN), "page 2 failed"))
    group = facts.reporter_groups["g"]
    assert (group.observed, group.observer_error) == (("b",), "page 2 failed")


def test_pins() -> None:
    """A pin counts first, also to a member that is not live; changes raise the generation."""
    facts = known()
    with Refused(Code.GROUP_NOT_FOUND):
        ownership.pin(facts, when(), "g", [provider_id(1)], "a")
    joined(facts, "a", 1)
    nodes = [provider_id(n) for n in range(3)]
    facts.apply(ownership.pin(facts, when(), "g", nodes[:2], "gone"))
    owners = ownership.owners(facts, "g", when().moment)
    assert [owners.of(node) for node in nodes] == ["gone", "gone", "a"]
    with Refused(Code.NOT_OWNER):
        owners.check(nodes[0], "a")
    assert not ownership.pin(facts, when(), "g", nodes[:2], "gone")
    assert facts.reporter_groups["g"].pins_generation == 1
    facts.apply(ownership.pin(facts, when(), "g", nodes, None))
    assert facts.pins == {}
    assert facts.reporter_groups["g"].pins_generation == 2
    with Refused(Code.LIMIT_EXCEEDED):
        many = [ProviderId(str(UUID(int=n))) for n in range(PINS_MAX + 1)]
        ownership.pin(facts, when(), "g", many, "a")


def test_nobody_owns_the_nodes_of_a_group_without_live_members() -> None:
    """Then every report is refused."""
    facts = known()
    joined(facts, "a", 1)
    owners = ownership.owners(facts, "g", when(31).moment)
    assert owners.of(provider_id(1)) is None
    with Refused(Code.NOT_OWNER):
        owners.check(provider_id(1), "a")


def test_the_last_pass() -> None:
    """It is part of a new member, and otherwise no change for followers."""
    facts, last = known(), Pass(Instant(BEGIN), 3, {"not_owner": 1})
    made = members.with_pass(join(facts, when(), "g", "a", instance(1), TTL), "g", "a", last)
    facts.apply(made)
    assert facts.members["g", "a"].last_pass == last
    later = replace(last, nodes=4)
    again = members.with_pass(join(facts, when(), "g", "a", instance(1), TTL), "g", "a", later)
    assert not again.is_logged
    facts.apply(again)
    made.update(again)
    assert facts.members == made.members
    assert facts.members["g", "a"].last_pass == later


def test_changes_merge() -> None:
    """A sign of life after a change of the same batch becomes part of it."""
    facts = known()
    changes = join(facts, when(), "g", "a", instance(1), TTL)
    facts.apply(changes)
    later = join(facts, when(7), "g", "a", instance(1), TTL)
    facts.apply(later)
    changes.update(later)
    assert changes.heard == {}
    assert changes.members["g", "a"] == facts.members["g", "a"]
    gone = Changes(heard={("g", "a"): Instant(1)})
    gone.update(leave(facts, "g", "a", None))
    facts.apply(gone)
    assert facts.members == {}
