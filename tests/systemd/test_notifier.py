"""Notifications: their text, both kinds of sockets, and a supervisor that is not there."""

import os
import socket
import time
from pathlib import Path

import pytest

from moorage.systemd.notifier import Notifier
from tests.systemd.systemd_double import NotifySocket


def notifier(double: NotifySocket, watchdog_seconds: float | None = None) -> Notifier:
    """Return a notifier to a double, which must never complain."""
    return Notifier(double.variables(watchdog_seconds), pytest.fail)


@pytest.mark.parametrize("abstract", [True, False])
def test_life(tmp_path: Path, abstract: bool) -> None:
    """A start, a reload and a stop are the notifications of `sd_notify(3)`, in their order."""
    with NotifySocket(None if abstract else tmp_path) as double:
        told = notifier(double)
        told.status("reading\nthe  catalog")
        told.status("reading\nthe  catalog")
        told.extend(1.5)
        told.ready()
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1_000
        with told.reloading():
            pass
        after = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1_000
        told.stopping()
        told.stopping()
        told.ready()
        told.status("last")
        double.wait_for("STATUS", "last".__eq__)
        reloading = double.received.pop(3)
        assert double.received == [
            {"STATUS": "reading the catalog"},
            {"EXTEND_TIMEOUT_USEC": "1500000"},
            {"READY": "1"},
            {"READY": "1"},
            {"STOPPING": "1"},
            {"STATUS": "last"},
        ]
        assert reloading["RELOADING"] == "1"
        assert before <= int(reloading["MONOTONIC_USEC"]) <= after


def test_a_reload_during_the_start_is_no_sign_of_readiness() -> None:
    """SIGHUP may come before the service is ready."""
    with NotifySocket() as double:
        told = notifier(double)
        with told.reloading():
            pass
        told.status("last")
        double.wait_for("STATUS")
        assert double.received == [{"STATUS": "last"}]


@pytest.mark.parametrize(
    ("variables", "seconds"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "3000000"}, 3.0),
        ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(os.getpid())}, 3.0),
        ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
    ],
)
def test_the_watchdog_is_for_one_process(variables: dict[str, str], seconds: float | None) -> None:
    """A process that inherits the variables is not the one that systemd expects to hear."""
    with NotifySocket() as double:
        told = Notifier({**double.variables(), **variables}, pytest.fail)
        assert told.watchdog_seconds == seconds
        told.alive()
        told.ready()
        told.alive()
        told.status("last")
        double.wait_for("STATUS")
        assert double.all_of("WATCHDOG") == ([] if seconds is None else ["1"])


def test_without_a_supervisor_nothing_happens() -> None:
    """No socket is opened."""
    told = Notifier({}, pytest.fail)
    assert not told.active
    told.status("reading the catalog")
    told.ready()
    told.alive()
    assert told.is_ready


@pytest.mark.parametrize(
    "address", ["/nowhere/notify", "@nobody-listens", "vsock:2:1234", "x" * 200]
)
def test_a_broken_supervisor_is_reported_once(address: str) -> None:
    """The service goes on."""
    said: list[str] = []
    told = Notifier({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "1000"}, said.append)
    told.ready()
    told.alive()
    told.status("serving")
    (line,) = said
    assert line.startswith(f"cannot notify {address!r} (NOTIFY_SOCKET): ")


def test_a_supervisor_that_does_not_read_delays_nothing_for_long(tmp_path: Path) -> None:
    """When its queue is full, a notification is lost, and the service goes on."""
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as deaf:
        deaf.bind(path)
        said: list[str] = []
        told = Notifier({"NOTIFY_SOCKET": path}, said.append)
        for number in range(100_000):
            told.status(str(number))
            if said:
                break
        assert "timed out" in said[0]
