"""The keeper against a small HTTP server: it reports an end at once, and silence is no end."""

import io
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from moorage.client.run.api_types import PATIENCE_SECONDS, LeaseRequest, lease_of
from moorage.client.run.clock import elapsed
from moorage.client.run.lease import acquire, renewer
from moorage.client.run.lease.acquire import Acquiring, Grant, Patience
from moorage.client.run.lease.api import Leases
from moorage.client.run.lease.idempotency_keys import OwnKey
from moorage.client.run.lease.lease_clock import LeaseTerm, margin_of
from moorage.client.run.lease.renewer import HASTY_MAX, Renewer
from moorage.client.run.lease.waiting import await_grant
from moorage.client.run.process.signals import SignalCollector
from moorage.client.run.progress import Progress
from moorage.client.transport import Transport
from tests.client.run.test_words import lease_json
from tests.client.screen import eventually

TTL = 600.0
SECONDS = 20.0
Answer = tuple[int, Any]


class LeaseServer(ThreadingHTTPServer):
    """A server of one lease, as the native API describes it.

    `knows` is its reaction to a request that waits for the end: `waits`, `at once` (`until` is
    unknown to it), or `refuses`. `asked` has the parameters of every GET; `renewals` counts
    renewals. `more` has additional members of the lease. `delays` are the seconds before each of
    the next renewals. `busy` is how many of the next renewals are refused with 503 and a
    Retry-After of an hour.
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

    def answer(self) -> Any:
        """Return the lease in its present state."""
        ended = {} if self.cause is None else {"state": "ended", "cause": self.cause}
        return lease_json(**{"ttl": TTL, **self.more, **ended})

    def end(self, cause: str) -> None:
        """End the lease."""
        with self.changed:
            self.cause = cause
            self.changed.notify_all()

    def until(self, so: Callable[[], bool]) -> None:
        """Wait until a condition is true."""
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
            return 200, self.answer()

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
            return 200, self.answer()


class _Handler(BaseHTTPRequestHandler):
    server: LeaseServer

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
        """Log nothing."""


@contextmanager
def serving_lease(knows: str) -> Iterator[LeaseServer]:
    """Run a server during a test."""
    server = LeaseServer(knows)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


class WatchedKeeper:
    """A keeper of the server's lease, with an event that it sets when it wakes its caller."""

    def __init__(self, server: LeaseServer, term: LeaseTerm, patient: bool = True) -> None:
        self.woken = threading.Event()
        leases = Leases(Transport(f"http://127.0.0.1:{server.server_port}", None))
        grant = Grant(lease_of(server.answer()), term)
        self.keeper = Renewer(leases, grant, term, self.woken.set, patient)

    def __enter__(self) -> Renewer:
        self.keeper.start()
        return self.keeper

    def __exit__(self, *_: object) -> None:
        self.keeper.close()


@pytest.mark.parametrize(("cause", "over"), [("revoked", False), ("hold_over", True)])
def test_an_end_is_reported_at_once(cause: str, over: bool) -> None:
    """An end is reported long before the next renewal, as a loss unless the hold was over."""
    with serving_lease("waits") as server:
        kept = WatchedKeeper(server, LeaseTerm(TTL, elapsed(), elapsed() + TTL))
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
    """After the refusal, only renewals show the end."""
    with serving_lease("refuses") as server:
        with WatchedKeeper(server, LeaseTerm(TTL, elapsed())) as keeper:
            for thread in keeper.threads[1:]:
                thread.join(SECONDS)
                assert not thread.is_alive()
            assert keeper.lost is None
        assert len(server.asked) == 1


def test_a_server_that_answers_at_once_gets_few_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that cannot wait gets only a few requests, with pauses between them."""
    monkeypatch.setattr(renewer, "PAUSE_SECONDS_MAX", 0.05)
    with serving_lease("at once") as server:
        began = elapsed()
        with WatchedKeeper(server, LeaseTerm(TTL, elapsed())) as keeper:
            for thread in keeper.threads[1:]:
                thread.join(SECONDS)
                assert not thread.is_alive()
            assert keeper.lost is None
        assert len(server.asked) == HASTY_MAX
        assert elapsed() - began >= (HASTY_MAX - 1) * 0.025


def test_a_refused_renewal_is_a_loss() -> None:
    """A refused renewal is a loss, even if the server cannot wait for the end."""
    with serving_lease("refuses") as server:
        server.end("revoked")
        kept = WatchedKeeper(server, LeaseTerm(TTL, elapsed() - TTL / 2))
        with kept as keeper:
            assert kept.woken.wait(SECONDS)
            assert keeper.lost == "it has ended (revoked)"


@pytest.mark.parametrize("patient", [True, False])
def test_silence_is_no_end_for_a_patient_keeper(
    patient: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lease not renewed in time is lost at once, or doubtful until the server answers again."""
    monkeypatch.setattr(renewer, "PAUSE_SECONDS_MAX", 0.05)
    with serving_lease("refuses") as server:
        server.silent = True
        kept = WatchedKeeper(server, LeaseTerm(TTL, elapsed() - TTL + 1), patient)
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


def test_a_loss_is_reported_before_the_server_may_end_the_lease() -> None:
    """Also if a renewal that was sent shortly before is not answered: nobody waits for it longer
    than the lease is valid. A patient keeper waits for the answer (the control).
    """
    ttl, left = 30.0, 0.2
    for patient in (False, True):
        with serving_lease("refuses") as server:
            server.delays = [4.0]
            sent = elapsed() - (ttl - margin_of(ttl) - left)
            watched = WatchedKeeper(server, LeaseTerm(ttl, sent), patient)
            with watched as keeper:
                server.until(lambda: server.renewals >= 1)
                assert watched.woken.wait(left + margin_of(ttl) / 2) is not patient
                if not patient:
                    assert keeper.lost is not None
                    assert elapsed() < sent + ttl


def test_after_a_suspension_the_server_is_asked() -> None:
    """After a suspension the keeper asks the server before the command continues."""
    for cause, lost in ((None, None), ("ttl_over", "it has ended (ttl_over)")):
        with serving_lease("refuses") as server:
            server.cause = cause
            with WatchedKeeper(server, LeaseTerm(TTL, elapsed() - 2 * TTL)) as keeper:
                keeper.settle(SECONDS)
                assert (keeper.lost, keeper.doubtful) == (lost, False)


def test_a_hold_that_was_moved_is_not_over() -> None:
    """Before the hold ends by the client's clock, a renewal finds out whether it was extended."""
    with serving_lease("refuses") as server:
        kept = WatchedKeeper(server, LeaseTerm(TTL, elapsed(), elapsed() + 0.1))
        server.more = {"hold": TTL, "hold_until": "2026-01-03T00:00:00Z"}
        with kept as keeper:
            server.until(lambda: server.renewals >= 1)
            eventually(lambda: keeper.seconds_left > TTL / 2)
            assert not (keeper.over or keeper.lost)


def acquire_grant(server: LeaseServer) -> Grant:
    """Request the server's lease and wait for its grant."""
    leases = Leases(Transport(f"http://127.0.0.1:{server.server_port}", None))
    attempt = Acquiring(leases, LeaseRequest((("a", 1),)), OwnKey(), Patience(SECONDS, SECONDS))
    with SignalCollector() as signals:
        return await_grant(attempt, Progress(io.StringIO()), signals, 1.0)


def test_a_stale_grant_is_renewed_first() -> None:
    """If the grant arrives after its TTL, only a renewal shows whether the lease is still valid."""
    with serving_lease("refuses") as server:
        server.more, server.delays = {"ttl": 1.0}, [0.15, 1.0]
        grant = acquire_grant(server)
        assert grant.term is not None
        assert not grant.term.lost(elapsed())
        assert server.renewals >= 3


def test_a_long_retry_after_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long Retry-After is cut, so that the client returns before its patience is over."""
    assert acquire.RETRY_SECONDS_MAX <= PATIENCE_SECONDS
    monkeypatch.setattr(acquire, "RETRY_SECONDS_MAX", 0.05)
    with serving_lease("refuses") as server:
        server.busy = 2
        assert acquire_grant(server).lease.id == "l1"
