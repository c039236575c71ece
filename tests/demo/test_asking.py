"""Requests of the example: a server that is busy, hangs or refuses ends nothing."""

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from demo.asking import BUSY, UNREACHABLE, Call, HttpAsker, Refusal, RefusalError, granted
from demo.example import SAID_MAX, live
from demo.stopping import Stop, StoppedError
from moorage.client.transport import Transport

CALL = Call("GET", "/v1/pools")
SECONDS = 20.0
"""More than any of these tests may take, and less than the longest wait for an answer."""


@pytest.fixture
def silent() -> Iterator[str]:
    """Return the address of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture
def stop() -> Iterator[Stop]:
    """Return what signals stop; afterwards signals do again what they did before."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    yield Stop()
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


def test_no_answer_is_a_refusal(silent: str, stop: Stop) -> None:
    """It is one of a busy server: the request may succeed later."""
    asker = HttpAsker(Transport(silent, "t", seconds_max=0.1), stop, patience=0.2)
    (answer,) = asker.ask([CALL])
    assert isinstance(answer, Refusal) and answer.code == UNREACHABLE
    assert granted(answer, *BUSY) is None
    with pytest.raises(RefusalError):
        granted(answer)


def test_a_signal_ends_the_wait_for_an_answer(silent: str, stop: Stop) -> None:
    """Ctrl-C works while a server hangs, and before the next request."""
    asker = HttpAsker(Transport(silent, "t"), stop)
    late = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    late.start()
    began = time.monotonic()
    with pytest.raises(StoppedError):
        asker.ask([CALL])
    assert time.monotonic() - began < 5
    late.join()
    with pytest.raises(StoppedError):
        asker.ask([CALL])


def test_life_goes_on_after_a_refusal(capsys: pytest.CaptureFixture[str]) -> None:
    """Each kind is said once, and not for ever; a signal ends it nevertheless."""
    said: set[str] = set()
    for number in range(2 * SAID_MAX):
        for _ in range(2):
            live(lambda: granted(Refusal("invalid", f"no {number}")), said)  # noqa: B023 - called at once
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == SAID_MAX
    assert lines[0] == "demo: refused: invalid: no 0; it goes on"

    def end() -> None:
        raise StoppedError

    with pytest.raises(StoppedError):
        live(end, said)
