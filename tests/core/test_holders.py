"""Who a lease is for, as people see it."""

import pytest

from moorage.core.admission.forecast import holders
from moorage.core.admission.forecast.holders import (
    NAMED,
    Holders,
    Holding,
    age_text,
    held_by,
    holders_of,
)
from moorage.core.admission.owners import GOVERNORS
from moorage.core.clock import DAY, HOUR, MINUTE, SECOND, Instant
from moorage.wire.labels import SHOWN_MAX, Naming, holder_of, name_of

AT = Instant(100 * DAY)
LONG = [f"{one * (SHOWN_MAX - 3)}..." for one in "xy"]


@pytest.mark.parametrize(
    ("owner", "label", "shown"),
    [
        (GOVERNORS, "node-1", "node-1"),
        ("ci", None, "ci"),
        ("ci", "ci", "ci"),
        ("ci", "node-1", "node-1 (ci)"),
        ("ci", GOVERNORS, "governor:hosts (ci)"),
        ("project/governor:x", "node-1", "node-1 (project/governor:x)"),
    ],
)
def test_nobody_passes_as_a_host(owner: str, label: str | None, shown: str) -> None:
    """Anybody can set the label; only that of a governor replaces the owner."""
    assert holder_of(owner, {"holder": label}) == shown


@pytest.mark.parametrize(
    ("labels", "shown"),
    [
        ({"job": "4711", "host": "runner-7", "user": "root"}, "job 4711 on runner-7 (ci)"),
        ({"job": "4711"}, "job 4711 (ci)"),
        ({"user": "alice", "host": "laptop"}, "alice on laptop (ci)"),
        ({"user": "ci", "host": "laptop"}, "laptop (ci)"),
        ({"user": "ci"}, "ci"),
        ({"holder": "node-1", "job": "4711"}, "node-1 (ci)"),
        ({"holder": "ci", "job": "4711"}, "ci"),
        ({"pid": "1", "command": "make", "build": "http://ci/1"}, "ci"),
        ({"job": "x" * 255}, f"job {'x' * (SHOWN_MAX - 3)}... (ci)"),
        ({"holder": "x" * 255}, f"{'x' * (SHOWN_MAX - 3)}... (ci)"),
        ({"user": "x" * 255, "host": "y" * 255}, f"{LONG[0]} on {LONG[1]} (ci)"),
    ],
)
def test_the_name_of_a_holder(labels: dict[str, str], shown: str) -> None:
    """The label `holder` names it, otherwise its job or user and its host; the owner is last."""
    assert holder_of("ci", labels) == shown


def test_a_label_of_a_governor_that_is_no_holder() -> None:
    """Only the label `holder` of a governor stands for its owner; it is shown in full."""
    assert holder_of(GOVERNORS, {"holder": "x" * 255}) == "x" * 255
    assert holder_of(GOVERNORS, {"host": "runner-7"}) == f"runner-7 ({GOVERNORS})"


@pytest.mark.parametrize(
    ("age", "shown"),
    [
        (0, ""),
        (MINUTE - 1, ""),
        (MINUTE, "1m"),
        (2 * MINUTE - 1, "1m"),
        (2 * HOUR, "2h"),
        (2 * HOUR + 10 * MINUTE + 59 * SECOND, "2h10m"),
        (2 * HOUR + 5 * MINUTE, "2h05m"),
        (DAY, "1d"),
        (3 * DAY + 4 * HOUR + MINUTE, "3d4h"),
        (-HOUR, ""),
    ],
)
def test_ages_are_coarse(age: int, shown: str) -> None:
    """An age changes once a minute at most, so that a reason that is read again stays the same."""
    assert age_text(age) == shown


def test_holders_in_a_sentence() -> None:
    """Three are named, with units if they have several, and since when; the others are counted."""
    job = Holding("job 4711 on runner-7 (ci)", 1, Instant(AT - 130 * MINUTE))
    team = Holding("team", 3, Instant(AT - 5 * MINUTE), several=True)
    new = Holding("new", 2, Instant(AT - SECOND))
    unknown = Holding("unknown", 1, None, several=True)
    assert held_by(Holders(), AT) == ""
    assert held_by(Holders((job,)), AT) == " by job 4711 on runner-7 (ci) for 2h10m"
    three = Holders((team, new, unknown), 2)
    assert held_by(three, AT) == " by team (3) for up to 5m, new (2), unknown and 2 more"


def test_only_holders_that_are_shown_get_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 500 leases with names of their own three are named: to name all takes a millisecond."""
    named = []

    def counted(one: Naming) -> str:
        named.append(one)
        return name_of(one)

    monkeypatch.setattr(holders, "name_of", counted)
    leases = [
        ("ci", 1, Instant(AT + number), Naming("ci", job=f"{number}")) for number in range(500)
    ]
    found = holders_of([("ci", 500)], leases)
    assert [one.name for one in found.named] == ["job 0 (ci)", "job 1 (ci)", "job 2 (ci)"]
    assert (len(named), found.others) == (NAMED, 497)


def test_the_most_units_come_first() -> None:
    """Equal names count together; leases that were not read are their owner's."""
    job, other = Naming("ci", job="1"), Naming("ci", job="2")
    found = holders_of(
        [("ci", 9), ("a", 2), ("b", 2)],
        [
            ("ci", 1, Instant(AT), job),
            ("b", 2, Instant(AT + 1), Naming("b")),
            ("ci", 1, Instant(AT + 2), other),
            ("ci", 2, Instant(AT + 3), job),
        ],
    )
    assert found == Holders(
        (
            Holding("ci", 5, None, several=True),
            Holding("job 1 (ci)", 3, AT, several=True),
            Holding("b", 2, Instant(AT + 1)),
        ),
        2,
    )
