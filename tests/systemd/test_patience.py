"""More time for a long start: only while something is done."""

import threading
from itertools import count

import pytest

from moorage.systemd.notifier import Notifier
from moorage.systemd.patience import patient
from tests.systemd.systemd_double import NotifySocket

LOOK_SECONDS = 0.05


def test_work_gets_more_time() -> None:
    """Each look that finds work asks for 30 s more; the watchdog of a stop knows of it, too."""
    with NotifySocket() as double:
        told = Notifier(double.variables(60), pytest.fail)
        told.ready()
        with patient(told, "reading the catalog", look_seconds=LOOK_SECONDS):
            done = threading.Event()

            def compute() -> None:
                while not done.is_set():
                    sum(range(1_000))

            thread = threading.Thread(target=compute)
            thread.start()
            double.wait_for("EXTEND_TIMEOUT_USEC", "30000000".__eq__, times=3)
            done.set()
            thread.join()
        assert double.received[1] == {"STATUS": "reading the catalog"}
        assert double.all_of("WATCHDOG")


@pytest.mark.parametrize("moved", [0, 1 << 16])
def test_idleness_gets_none(moved: int) -> None:
    """A start that waits for something is not extended; bytes that are moved are work, too."""
    looks = threading.Semaphore(0)
    total = count(0, moved) if moved else iter(lambda: 0, None)

    def work() -> tuple[float, int]:
        looks.release()
        return 0.0, next(total)

    with NotifySocket() as double:
        told = Notifier(double.variables(), pytest.fail)
        with patient(told, "opening the database", look_seconds=LOOK_SECONDS, work=work):
            for _ in range(5):
                assert looks.acquire(timeout=30)
        told.status("last")
        double.wait_for("STATUS", "last".__eq__)
        assert bool(double.all_of("EXTEND_TIMEOUT_USEC")) == bool(moved)


def test_the_start_gets_none_once_the_service_stops() -> None:
    """The supervisor would add it to the stop. The stop has a patience of its own."""
    looks = threading.Semaphore(0)
    total = count(0, 1)

    def work() -> tuple[float, int]:
        looks.release()
        return float(next(total)), 0

    with NotifySocket() as double:
        told = Notifier(double.variables(), pytest.fail)
        with patient(told, "opening the database", look_seconds=LOOK_SECONDS, work=work):
            double.wait_for("EXTEND_TIMEOUT_USEC", times=2)
            told.stopping()
            double.silent_for("EXTEND_TIMEOUT_USEC", 10 * LOOK_SECONDS)
        before = len(double.all_of("EXTEND_TIMEOUT_USEC"))
        with patient(told, "closing the database", look_seconds=LOOK_SECONDS, work=work):
            double.wait_for("EXTEND_TIMEOUT_USEC", times=before + 2)


def test_the_work_of_this_process_is_counted() -> None:
    """An idle process does less than what counts as work; the looks themselves are not work."""
    with NotifySocket() as double:
        told = Notifier(double.variables(), pytest.fail)
        waiting = threading.Event()
        with patient(told, "waiting", look_seconds=LOOK_SECONDS):
            waiting.wait(20 * LOOK_SECONDS)
        told.status("last")
        double.wait_for("STATUS", "last".__eq__)
        assert len(double.all_of("EXTEND_TIMEOUT_USEC")) <= 2  # other threads of the tests may work


def test_without_a_supervisor_there_is_no_thread() -> None:
    """Nothing looks."""
    before = threading.active_count()
    with patient(Notifier({}, pytest.fail), "reading the catalog"):
        assert threading.active_count() == before
