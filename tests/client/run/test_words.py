"""The client of `moorage run`: fields of the native API, texts for people, and lease times."""

import io
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from moorage.client.run.api_types import (
    PATIENCE_SECONDS_MAX,
    Lease,
    LeaseRequest,
    StrangeAnswerError,
    Waiting,
    lease_of,
)
from moorage.client.run.clock import elapsed
from moorage.client.run.durations import spoken
from moorage.client.run.lease import lease_clock
from moorage.client.run.lease.lease_clock import WORD_SECONDS, LeaseTerm, margin_of
from moorage.client.run.parse import UNREACHABLE_SECONDS, UsageError, wish_of
from moorage.client.run.progress import Progress, standing_of, ticket_of
from moorage.core import limits
from moorage.core.admission import model
from moorage.wire import admission as wire
from moorage.wire.durations import seconds_of
from tests.support.granted import granted


def lease_json(**changed: Any) -> Any:
    """Return a lease as JSON of a server."""
    lease = granted(
        "k",
        {"a": 1, "b": 2},
        id="l1",
        owner="o",
        slots={"b": ["b-1", "b-2"], "a": ["a-7"]},
        ttl=60.0,
        expires_at=datetime(2026, 1, 2, tzinfo=UTC),
        token="1.2.3",
        record=None,
    )
    return msgspec.to_builtins(lease) | changed


def test_fields_are_those_of_the_native_api() -> None:
    """Every field that is read or sent exists in the native API."""
    assert set(Lease._fields) - {"pools"} <= {field.name for field in fields(wire.Lease)}
    assert set(Waiting._fields) <= {field.name for field in fields(wire.Waiting)}
    body = LeaseRequest((("a", 2),), ttl=5.0, hold=7.0, priority=1, labels=(("x", "y"),)).body("k")
    asked = msgspec.convert(body, wire.LeaseWanted, strict=True)
    assert asked == wire.LeaseWanted(
        needs=[wire.NeedWanted(pool="a", units=2)],
        key="k",
        ttl=5.0,
        hold=7.0,
        priority=1,
        labels={"x": "y"},
    )


def test_a_usual_ttl_is_sent_where_none_is_named() -> None:
    """The usual TTL is sent unless a TTL is named."""
    wish = LeaseRequest((("a", 1),), usual_ttl=600.0)
    assert wish.body("k")["ttl"] == 600.0
    assert wish._replace(ttl=5.0).body("k")["ttl"] == 5.0


def test_labels_of_slots_belong_to_a_pool() -> None:
    """Labels of slots are sent with the need of their pool; a pool's name need not be repeated."""
    none = dict.fromkeys(("ttl", "hold", "priority", "patience", "unreachable_after", "no_labels"))

    def needs_of(*labels: str, pools: list[str]) -> Any:
        wish = wish_of({"pool": pools, "label": [], "slot_label": labels, **none}, 71)
        return wish.body("k")["needs"]

    both = {"pool": "a", "units": 1, "labels": {"region": "eu", "tier": "b:c=d"}}
    assert needs_of("region=eu", "tier=b:c=d", pools=["a"]) == [both]
    several = needs_of("a:region=eu", "b:region=us", pools=["a", "b", "c"])
    assert [need.get("labels") for need in several] == [{"region": "eu"}, {"region": "us"}, None]
    for labels, pools in ((["eu"], ["a"]), (["=eu"], ["a"]), (["region=eu"], ["a", "b"])):
        with pytest.raises(UsageError, match="--slot-label"):
            needs_of(*labels, pools=pools)


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ({}, UNREACHABLE_SECONDS + 30),
        ({"unreachable_after": "5m"}, 330),
        ({"unreachable_after": "0"}, 30),
        ({"unreachable_after": "3h"}, PATIENCE_SECONDS_MAX),
        ({"patience": "10s", "unreachable_after": "5m"}, 10),
    ],
)
def test_patience_is_longer_than_retries(words: dict[str, str], seconds: float) -> None:
    """The patience exceeds --unreachable-after by a poll, so that the ticket is still there."""
    none = dict.fromkeys(("ttl", "hold", "priority", "patience", "unreachable_after", "no_labels"))
    wish = wish_of({"pool": ["a"], "label": [], **none, **words}, 1)
    assert wish.patience == seconds
    assert PATIENCE_SECONDS_MAX == limits.PATIENCE_SECONDS_MAX


def test_the_client_renews_as_often_as_the_server_expects() -> None:
    """The single file cannot import the core's rule, so it repeats it."""
    assert lease_clock.RENEWALS == model.RENEWALS


def test_a_lease_is_read() -> None:
    """Slots are in the order of the pools; times stay as they were sent."""
    lease = lease_of(lease_json())
    assert (lease.pools, lease.slot_names) == (("a", "b"), ["a-7", "b-1", "b-2"])
    assert (lease.expires_at, lease.ttl, lease.hold) == ("2026-01-02T00:00:00Z", 60.0, None)
    waiting = wire.Waiting(position=3, eta_seconds=(1.0, 2.5), overdue=False, code="c", reason="r")
    ticket = lease_of(lease_json(state="waiting", waiting=msgspec.to_builtins(waiting)))
    assert ticket.waiting == Waiting(3, (1.0, 2.5), "r", code="c")


def test_a_lease_ends_by_its_ttl_or_its_hold() -> None:
    """The earlier time counts, also if only one has fractions of a second; both may be missing."""
    early, late = "2026-01-02T00:00:00Z", "2026-01-02T00:00:00.5Z"
    for expires, hold, ends in (
        (early, late, early),
        (late, early, early),
        (late, None, late),
        (None, early, early),
        (None, None, None),
    ):
        assert lease_of(lease_json(expires_at=expires, hold_until=hold)).ends_at == ends


@pytest.mark.parametrize(
    ("hold", "until", "lasts"),
    [
        (None, None, None),
        (7200.0, None, 7200.0),
        (7200.0, "2026-01-02T02:00:00Z", 7200.0),
        (7200.0, "2026-01-02T00:01:00Z", 60.0),
        (None, "2026-01-02T00:01:00.5Z", 60.5),
        (60.0, "2026-01-02T01:00:00Z", 60.0),
    ],
    ids=["endless", "older server", "its hold", "a booking", "no hold", "was extended"],
)
def test_a_booking_may_end_a_lease_before_its_hold(
    hold: float | None, until: str | None, lasts: float | None
) -> None:
    """So `moorage run` says how long it lasts, and does not count on more without the server."""
    granted_at = "2026-01-02T00:00:00Z"
    lease = lease_of(lease_json(hold=hold, hold_until=until, granted_at=granted_at))
    assert lease.lasts == lasts
    assert lease._replace(granted_at=None).lasts == hold


def test_a_request_to_stop_names_the_time_to_the_second() -> None:
    """Servers send microseconds, which nobody reads."""
    answer = lease_json(superseded_by="l2", stop_until="2026-11-30T03:13:02.590094Z")
    assert lease_of(answer).stop_text == (
        "the newer l2 of its group asks it to stop; the lease ends at 2026-11-30T03:13:02+00:00"
    )


@pytest.mark.parametrize(
    ("eta", "overdue", "said"),
    [
        ((-1.0, 0.2), False, "place 1, expected any moment now; r"),
        ((0.0, 600.0), False, "place 1, expected in up to 10m; r"),
        ((3.0, 3.0), False, "place 1, expected in 3s; r"),
        ((3.0, 3.0), True, "place 1, longer than usual; r"),
    ],
)
def test_the_first_standing_is_a_sentence(
    eta: tuple[float, float], overdue: bool, said: str
) -> None:
    """Also if the turn has come."""
    waiting = Waiting(1, eta, "r", overdue=overdue, code="limit")
    assert ticket_of("t", "p", waiting) == f"ticket t waits in line of p: {said}"


WAITING = {"position": 3, "eta_seconds": [1.0, 2.5], "reason": "r"}
"""Why a ticket waits, in the words of the oldest servers."""


@pytest.mark.parametrize(
    "answer",
    [
        *(None, [], {}, "x", 1, True),
        *(
            lease_json(needs=needs)
            for needs in (None, 1, [{}], ["a"], [{"pool": "a", "units": "x"}])
        ),
        *(lease_json(slots=slots) for slots in (None, [], "a", {"a": None}, {"a": 1})),
        *(lease_json(ttl=ttl) for ttl in ("x", [], {})),
        lease_json(hold="x"),
        *(lease_json(labels=labels) for labels in (None, [], "x")),
        *(lease_json(waiting=waiting) for waiting in ({}, [], "x", 1)),
        *(lease_json(waiting=WAITING | {"eta_seconds": eta}) for eta in ([], [1.0], "x", 1, {})),
        lease_json(waiting=WAITING | {"position": "x"}),
        lease_json(waiting=WAITING | {"position": None}),
    ],
)
def test_an_invalid_lease_is_refused(answer: Any) -> None:
    """An answer that is no lease is refused."""
    with pytest.raises(StrangeAnswerError):
        lease_of(answer)


def test_leases_of_older_servers_are_read() -> None:
    """What older servers did not send may be missing, as may all that is not read here."""
    later = {"owner", "labels", "asked_at", "superseded_by", "stop_until", "preempted_by"}
    later.add("granted_at")
    read = {*Lease._fields} - {"pools", *later}
    older = {name: value for name, value in lease_json(waiting=WAITING).items() if name in read}
    assert lease_of(older) == lease_of(lease_json(waiting=WAITING))._replace(
        owner="", labels={}, asked_at="", granted_at=None
    )
    assert lease_of(older).waiting == Waiting(3, (1.0, 2.5), "r", overdue=False, code="")
    for name in sorted(read):
        with pytest.raises(StrangeAnswerError, match=name):
            lease_of({one: value for one, value in older.items() if one != name})


def test_leases_of_newer_servers_are_read() -> None:
    """Unknown members are ignored; unknown states, causes and reasons are kept, to be shown."""
    newer = lease_json(
        state="frozen",
        cause="eclipse",
        needs=[{"pool": "a", "units": 1, "colour": "red"}],
        waiting=WAITING | {"code": "moon", "phase": 1},
        weather={"sun": True},
    )
    lease = lease_of(newer)
    assert (lease.state, lease.end, lease.needs) == ("frozen", "eclipse", (("a", 1),))
    assert lease.waiting == Waiting(3, (1.0, 2.5), "r", code="moon")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("1.5", 1.5),
        ("20m", 1200),
        ("1h30m", 5400),
        ("500ms", 0.5),
        ("0", 0),
        ("2d", 172800),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    """A bare number means seconds; units may be combined."""
    assert seconds_of(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "m", "1x", "-1", "1h 30m", "nan", "inf", "1m2", "9" * 400 + "s"]
)
def test_invalid_durations(text: str) -> None:
    """Everything else is refused with an example."""
    with pytest.raises(ValueError, match="duration"):
        seconds_of(text)


def test_durations_for_people() -> None:
    """At most two units, without false precision."""
    assert [spoken(s) for s in (0.2, 59.4, 60, 80, 3600, 7500)] == [
        "0s",
        "59s",
        "1m",
        "1m20s",
        "1h",
        "2h05m",
    ]


def test_the_standing_of_a_ticket() -> None:
    """The line has the position, the estimate, the reason and the time waited so far."""
    waiting = Waiting(4, (120.0, 300.0), "3 ahead; pacing: next grant in 12 s")
    assert standing_of("install/azure", waiting, 80.0, None) == (
        "waiting for install/azure: place 4; 2m to 5m to go; "
        "3 ahead; pacing: next grant in 12 s (1m20s so far)"
    )
    assert standing_of("a", None, 5.0, None) == "waiting for a (5s so far)"
    late = Waiting(1, None, "first in line", overdue=True)
    assert standing_of("a", late, 5.0, None) == (
        "waiting for a: place 1; longer than usual; first in line (5s so far)"
    )
    assert standing_of("a", waiting, 5.0, "no answer") == "waiting for a (5s so far): no answer"


@pytest.mark.parametrize(
    ("age", "expected"),
    [
        (0, "20s to 30s to go"),
        (19, "1s to 11s to go"),
        (20, "up to 10s to go"),
        (29, "up to 1s to go"),
        (30, "any moment now"),
        (34, "any moment now"),
        (36, "longer than usual"),
    ],
)
def test_an_estimate_counts_down_between_answers(age: float, expected: str) -> None:
    """Between polls, the time passed is subtracted from the estimate."""
    waiting = Waiting(1, (20.0, 30.0), "")
    assert (
        standing_of("a", waiting, 1.0, None, age)
        == f"waiting for a: place 1; {expected} (1s so far)"
    )


def test_an_exact_estimate_is_one_duration() -> None:
    """A range without width is one duration, and `overdue` is optional."""
    waiting = Waiting(1, (20.0, 20.2), "")
    assert "; about 20s to go (" in standing_of("a", waiting, 1.0, None)


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_log_gets_a_line_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log gets the standing at once and then every minute; a terminal gets one live line."""
    log = io.StringIO()
    notices = Progress(log)
    for second in range(0, 180, 5):
        notices.standing(f"at {second}", 1000.0 + second)
    assert log.getvalue() == "moorage: at 0\nmoorage: at 60\nmoorage: at 120\n"
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "20")
    terminal = Terminal()
    notices = Progress(terminal)
    notices.standing("one", 0.0)
    notices.standing("unseen", 0.5)
    notices.standing("two, which is longer than the terminal", 1.0)
    notices.say("done")
    assert terminal.getvalue() == (
        "\r\x1b[Kmoorage: one\r\x1b[Kmoorage: two, which\r\x1b[Kmoorage: done\n"
    )


def test_a_notice_is_one_line() -> None:
    """Line breaks from a server do not break a log's lines, and a closed log is no error."""
    log = io.StringIO()
    Progress(log).say("a\nb\r c")
    assert log.getvalue() == "moorage: a b c\n"
    log.close()
    Progress(Terminal()).say("x")
    broken = Progress(io.StringIO())
    broken._stream.close()
    broken.say("unread")


def test_the_deadline_is_before_the_end_of_the_ttl() -> None:
    """The deadline counts from the sending of the request, and is a margin before the TTL ends."""
    term = LeaseTerm(60.0, sent=100.0)
    assert (term.renew_at, term.deadline) == (120.0, 150.0)
    assert [margin_of(ttl) for ttl in (3.0, 60.0, 3600.0)] == [0.5, 10.0, 30.0]
    assert not term.lost(149.9)
    assert term.lost(150.0)


def test_a_renewal_counts_from_its_sending() -> None:
    """A slow answer does not extend it, an older one does not shorten it, a late one is ignored."""
    term = LeaseTerm(60.0, sent=100.0)
    assert term.renewed(sent=120.0, now=149.0)
    assert term.deadline == 170.0
    assert term.renewed(sent=110.0, now=160.0)
    assert term.deadline == 170.0
    assert not term.renewed(sent=169.0, now=170.0)
    assert term.lost(170.0)


def test_a_late_renewal_counts_for_a_patient_keeper() -> None:
    """The server renews no ended lease, so a late answer counts if the client waits for it."""
    term = LeaseTerm(60.0, sent=100.0)
    assert not term.renewed(sent=170.0, now=171.0)
    assert term.renewed(sent=170.0, now=171.0, late=True)
    assert (term.lost(171.0), term.deadline) == (False, 220.0)


def test_when_to_look_again() -> None:
    """The next look is at the next deadline; times that have passed do not count."""
    term = LeaseTerm(60.0, sent=100.0, hold_by=155.0)
    looks = [term.seconds_to_look(now) for now in (100.0, 150.0, 151.0, 155.0 + WORD_SECONDS)]
    assert looks == [50.0, 5.0 + WORD_SECONDS, 4.0 + WORD_SECONDS, float("inf")]


def test_a_hold_that_is_over_is_no_loss() -> None:
    """Before the end of the hold a missed deadline is a loss, afterwards it is not."""
    term = LeaseTerm(60.0, sent=100.0, hold_by=300.0)
    assert term.lost(200.0)
    assert term.lost(299.0)
    assert not term.lost(300.0)


def test_the_server_confirms_the_end_of_a_hold() -> None:
    """The hold may have been extended, so it is over only after the server had time to answer."""
    term = LeaseTerm(60.0, sent=100.0, hold_by=110.0)
    assert term.renew_at == 110.0
    assert not term.over(110.0 + WORD_SECONDS - 0.1)
    assert term.over(110.0 + WORD_SECONDS)
    assert term.renewed(sent=110.0, now=111.0)
    assert term.renew_at == 130.0
    assert LeaseTerm(60.0, sent=100.0, hold_by=300.0).renew_at == 120.0


def test_the_command_is_killed_before_the_ttl_ends() -> None:
    """After the deadline there is time to end, then to be killed before the TTL is over."""
    for ttl in (1.0, 6.0, 60.0, 600.0):
        term = LeaseTerm(ttl, sent=100.0)
        assert term.deadline < term.kill_by < 100.0 + ttl


def test_the_clock_does_not_jump() -> None:
    """The clock is monotonic, unlike the wall clock."""
    first, second = elapsed(), elapsed()
    assert 0 <= second - first < 60
