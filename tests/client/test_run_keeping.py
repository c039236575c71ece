"""Keeping a lease against a small real server: its end is told at once, silence is no end."""

import io
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from moorage.client.run.api_types import PATIENCE_SECONDS, Wish, lease_of
from moorage.client.run.clock import elapsed
from moorage.client.run.lease import acquire, renewer
from moorage.client.run.lease.acquire import Acquiring, Grant, Patience
from moorage.client.run.lease.api import Leases
from moorage.client.run.lease.idempotency_keys import OwnKey
from moorage.client.run.lease.lease_clock import Term
from moorage.client.run.lease.renewer import HASTY_MAX, Keeper
from moorage.client.run.lease.waiting import await_grant
from moorage.client.run.process.signals import Signals
from moorage.client.run.progress import Notices
from moorage.client.transport import Transport
from tests.client.screen import eventually
from tests.client.test_run_words import told as lease_told

TTL = 600.0
SECONDS = 20.0
Answer = tuple[int, Any]


class Fake(ThreadingHTTPServer):
    """A server of one lease, as the native API describes it.

    `knows`: how it answers whoever waits for the end: `waits`, `at once` (it does not know
    `until`), or `refuses` it. `asked` are the parameters of every look, `renewals` counts those.
    `more` is what else is told of the lease, `delays` are seconds before each of the next renewals.
    `busy` is how many of the next are refused, to be repeated after an hour.
    """

    daemon_threads = True

    def __init__(self, knows: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.knows = knows
        self.asked: list[dict[str, list[str]]] = []
        self.renewals = 0
        self.silent = False
        self.cause: str | None = None
        self.more: dict[str, Any] = {}
        self.delays: list[float] = []
        self.busy = 0
        self.changed = threading.Condition()

    def told(self) -> Any:
        """The lease as it stands."""
        ended = {} if self.cause is None else {"state": "ended", "cause": self.cause}
        return lease_told(**{"ttl": TTL, **self.more, **ended})

    def end(self, cause: str) -> None:
        """End the lease."""
        with self.changed:
            self.cause = cause
            self.changed.notify_all()

    def until(self, so: Callable[[], bool]) -> None:
        """Wait until it is so."""
        with self.changed:
            assert self.changed.wait_for(so, SECONDS)

    def look(self, query: dict[str, list[str]]) -> Answer:
        """Answer a GET."""
        with self.changed:
            self.asked.append(query)
            self.changed.notify_all()
            if "until" in query and self.knows == "refuses":
                return 400, {"code": "invalid", "detail": "until is unknown"}
            if query.get("until") == ["ended"] and self.knows == "waits":
                self.changed.wait_for(lambda: self.cause is not None, float(query["wait"][0]))
            return 200, self.told()

    def renew(self) -> Answer:
        """Answer a renewal."""
        with self.changed:
            self.renewals += 1
            self.changed.notify_all()
            if self.delays:
                self.changed.wait_for(lambda: False, self.delays.pop(0))
            if self.busy:
                self.busy -= 1
                return 503, {"code": "busy", "detail": "it is busy"}
            if self.cause is not None:
                return 409, {"code": "lease_ended", "detail": "it has ended"}
            return 200, self.told()


class _Handler(BaseHTTPRequestHandler):
    server: Fake

    def do_GET(self) -> None:
        self._answer(self.server.look(parse_qs(urlsplit(self.path).query)))

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.server.silent:
            with self.server.changed:
                self.server.renewals += 1
                self.server.changed.notify_all()
            return
        self._answer(self.server.renew())

    def _answer(self, answer: Answer) -> None:
        body = json.dumps(answer[1]).encode()
        self.send_response(answer[0])
        self.send_header("Content-Length", str(len(body)))
        if answer[0] == 503:
            self.send_header("Retry-After", "3600")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing."""


@contextmanager
def fake(knows: str) -> Iterator[Fake]:
    """Serve for as long as a test wants."""
    server = Fake(knows)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


class Kept:
    """A keeper of the lease of a server, and an event for each of its words."""

    def __init__(self, server: Fake, term: Term, patient: bool = True) -> None:
        self.woken = threading.Event()
        leases = Leases(Transport(f"http://127.0.0.1:{server.server_port}", None))
        grant = Grant(lease_of(server.told()), term)
        self.keeper = Keeper(leases, grant, term, self.woken.set, patient)

    def __enter__(self) -> Keeper:
        self.keeper.start()
        return self.keeper

    def __exit__(self, *_: object) -> None:
        self.keeper.close()


@pytest.mark.parametrize(("cause", "over"), [("revoked", False), ("hold_over", True)])
def test_an_end_is_told_at_once(cause: str, over: bool) -> None:
    """Long before the next renewal: a loss, unless it was the hold that has ended it."""
    with fake("waits") as server:
        kept = Kept(server, Term(TTL, elapsed(), elapsed() + TTL))
        with kept as keeper:
            server.until(lambda: bool(server.asked))
            assert server.asked[0]["until"] == ["ended"]
            assert 0 < float(server.asked[0]["wait"][0]) <= 60
            assert not (keeper.lost or keeper.over)
            server.end(cause)
            assert kept.woken.wait(SECONDS)
            assert keeper.over == over
            assert keeper.lost == (None if over else f"it has ended ({cause})")
        assert server.renewals == 0


def test_a_server_that_refuses_to_wait_is_asked_once() -> None:
    """Then the renewals alone tell of the end."""
    with fake("refuses") as server:
        with Kept(server, Term(TTL, elapsed())) as keeper:
            for thread in keeper.threads[1:]:
                thread.join(SECONDS)
                assert not thread.is_alive()
            assert keeper.lost is None
        assert len(server.asked) == 1


def test_a_server_that_answers_at_once_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not know how to wait: it is asked a few times, with pauses, and no more."""
    monkeypatch.setattr(renewer, "PAUSE_SECONDS_MAX", 0.05)
    with fake("at once") as server:
        began = elapsed()
        with Kept(server, Term(TTL, elapsed())) as keeper:
            for thread in keeper.threads[1:]:
                thread.join(SECONDS)
                assert not thread.is_alive()
            assert keeper.lost is None
        assert len(server.asked) == HASTY_MAX
        assert elapsed() - began >= (HASTY_MAX - 1) * 0.025


def test_without_the_server_knowing_renewals_tell_of_the_end() -> None:
    """A renewal that is refused is a loss, whatever else the server knows."""
    with fake("refuses") as server:
        server.end("revoked")
        kept = Kept(server, Term(TTL, elapsed() - TTL / 2))
        with kept as keeper:
            assert kept.woken.wait(SECONDS)
            assert keeper.lost == "it has ended (revoked)"


@pytest.mark.parametrize("patient", [True, False])
def test_silence_is_no_end_for_the_patient(patient: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not renewed in time, it is lost at once, or in doubt until the server answers again."""
    monkeypatch.setattr(renewer, "PAUSE_SECONDS_MAX", 0.05)
    with fake("refuses") as server:
        server.silent = True
        kept = Kept(server, Term(TTL, elapsed() - TTL + 1), patient)
        with kept as keeper:
            if not patient:
                assert keeper.lost is not None
                assert not keeper.doubtful
                return
            server.until(lambda: server.renewals >= 1)
            assert keeper.lost is None
            assert keeper.doubtful
            server.silent = False
            keeper.settle(SECONDS)
            assert (keeper.lost, keeper.doubtful, keeper.failing_seconds) == (None, False, 0.0)


def test_whoever_wakes_up_waits_for_word() -> None:
    """A lease that was not renewed in time is lost or not before the command goes on."""
    for cause, lost in ((None, None), ("ttl_over", "it has ended (ttl_over)")):
        with fake("refuses") as server:
            server.cause = cause
            with Kept(server, Term(TTL, elapsed() - 2 * TTL)) as keeper:
                keeper.settle(SECONDS)
                assert (keeper.lost, keeper.doubtful) == (lost, False)


def test_a_hold_that_was_moved_is_not_over() -> None:
    """Before our own clock says that it is over the server is asked: it is renewed as before."""
    with fake("refuses") as server:
        kept = Kept(server, Term(TTL, elapsed(), elapsed() + 0.1))
        server.more = {"hold": TTL, "hold_until": "2026-01-03T00:00:00Z"}
        with kept as keeper:
            server.until(lambda: server.renewals >= 1)
            eventually(lambda: keeper.seconds_left > TTL / 2)
            assert not (keeper.over or keeper.lost)


def granted(server: Fake) -> Grant:
    """Ask for the lease of a server, and wait for it."""
    leases = Leases(Transport(f"http://127.0.0.1:{server.server_port}", None))
    attempt = Acquiring(leases, Wish((("a", 1),)), OwnKey(), Patience(SECONDS, SECONDS))
    with Signals() as signals:
        return await_grant(attempt, Notices(io.StringIO()), signals, 1.0)


def test_a_grant_that_is_stale_is_asked_for_again() -> None:
    """Its answer is read when the TTL is over: only the server knows whether it is still ours."""
    with fake("refuses") as server:
        server.more, server.delays = {"ttl": 1.0}, [0.15, 1.0]
        grant = granted(server)
        assert grant.term is not None
        assert not grant.term.lost(elapsed())
        assert server.renewals >= 3


def test_no_server_makes_us_wait_for_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is told to come back later does so while its place is kept."""
    assert acquire.RETRY_SECONDS_MAX <= PATIENCE_SECONDS
    monkeypatch.setattr(acquire, "RETRY_SECONDS_MAX", 0.05)
    with fake("refuses") as server:
        server.busy = 2
        assert granted(server).lease.id == "l1"
