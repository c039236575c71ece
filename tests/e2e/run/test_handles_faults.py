"""Handle commands when requests and answers are lost, each in turn: one holder, no leak."""

import itertools
import os
import signal
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import pytest

from moorage.client.main import main
from moorage.client.run.handles import acquiring
from moorage.client.run.handles.file import Handle, HandleEntry
from tests.e2e.run.test_run import WAITING
from tests.e2e.support.carried import SECONDS, Harbour, eventually, line
from tests.e2e.support.relay import Relay

pytestmark = pytest.mark.thorough

ONCE = ("--unreachable-after", "0", "--release-timeout", "0")
"""A command that loses an answer fails at once."""

COMMANDS = {
    "acquire": ("lease", "acquire", *ONCE, "--pool"),
    "retry": ("lease", "retry", *ONCE),
    "renew": ("lease", "renew"),
    "release": ("lease", "release", "--release-timeout", "0.2"),
    "delay": ("lease", "release", "--release-timeout", "0.2", "--delay", "1h"),
}
STEPS = ("acquire", "retry", "retry", "delay", "acquire", "release")
"""The commands of one script, from acquire to release."""

AFTER = ("same", "acquire", "retry", "renew", "release")
"""What may be done after a failed command, before the script continues."""

FAULTS = (("lost_requests", 1), ("lost_answers", 1), ("lost_answers", 2))
"""What is lost, and how many in a row."""


@pytest.fixture
def handle(tmp_path: Path) -> str:
    """A file in its own folder."""
    return str(tmp_path / "handle")


class Script:
    """Commands on one handle in one pool, carried out in this process, through a relay."""

    def __init__(self, port: Harbour, folder: Path, pool: str) -> None:
        self.port = port
        self.pool = pool
        self.handle = folder / str(uuid4())
        self.relay = Relay(port.server.url)
        self.failed = 0

    def do(self, step: str) -> int:
        """Run one command; return its exit code. There is never more than one holder."""
        words = [*COMMANDS[step], *([self.pool] if step == "acquire" else [])]
        where = ["--handle", str(self.handle), "--url", self.relay.url, "--token", self.port.token]
        code = main([*words, *where], ("moorage",))
        live = self.port.leases(self.pool)
        assert len(live) <= 1, f"{len(live)} leases after {step}"
        return code

    def play(self, steps: Sequence[str], after: str) -> None:
        """Run all commands; after a failed one, run another command, then that one again."""
        for step in steps:
            if self.do(step):
                self.failed += 1
                self.do(step if after == "same" else after)
                self.do(step)
        self.do("release")
        assert self.port.leases(self.pool) == [], "a lease has leaked"
        assert not self.handle.exists()


@pytest.mark.parametrize("after", AFTER)
def test_whatever_is_lost_nothing_leaks(port: Harbour, tmp_path: Path, after: str) -> None:
    """Each request of a script is lost in turn, then each answer, and each two answers."""
    pool = port.pool(limit=9)
    with ExitStack() as stack:
        whole = Script(port, tmp_path, pool)
        stack.enter_context(whole.relay)
        whole.play(STEPS, after)
        assert whole.failed == 0
        faults = 0
        for number, (kind, times) in itertools.product(range(1, whole.relay.tried + 1), FAULTS):
            script = Script(port, tmp_path, pool)
            stack.enter_context(script.relay)
            setattr(script.relay, kind, {*range(number, number + times)})
            script.play(STEPS, after)
            faults += script.failed
        assert faults >= whole.relay.tried


def test_the_script_finds_a_retry_with_another_key(
    port: Harbour, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: a retry that does not reuse the unanswered key leaks."""

    def anew(handle: Handle) -> list[HandleEntry]:
        for entry in handle.entries():
            handle.change(entry, entry._replace(key=str(uuid4()), retrying=True))
        return handle.entries()

    monkeypatch.setattr(acquiring, "_begun", anew)
    script = Script(port, tmp_path, port.pool(limit=9))
    with script.relay:
        script.relay.lost_answers = {3}  # the first retry, after the lease and its confirmation
        with pytest.raises(AssertionError, match=r"leases after retry|leaked"):
            script.play(STEPS, "renew")


def test_a_retry_that_was_not_answered_goes_on(port: Harbour, handle: str) -> None:
    """The server has retried, and its answer is lost: the next retry finds the same lease."""
    pool = port.pool(limit=5)
    words = ("--handle", handle, *ONCE)
    assert port.finished("lease", "acquire", "--pool", pool, *words).returncode == 0
    with Relay(port.server.url) as relay:
        relay.lose = 1
        assert port.finished("lease", "retry", *words, url=relay.url).returncode == 5
    (made,) = port.leases(pool)
    assert port.finished("lease", "retry", *words).returncode == 0
    assert [lease.id for lease in port.leases(pool)] == [made.id]
    assert port.finished("lease", "retry", *words).returncode == 0
    assert [lease.cause for lease in port.ended(pool)] == ["retried", "retried"]


@pytest.mark.parametrize("again", ["acquire", "release"])
@pytest.mark.parametrize("named", [True, False])
def test_a_signal_while_no_answer_comes_keeps_the_key(
    port: Harbour, handle: str, again: str, named: bool
) -> None:
    """The server has granted a lease that cannot be reported: the file that knows it stays."""
    pool = port.pool(limit=5)
    where = ("--handle", handle) if named else ()
    with Relay(port.server.url) as relay:
        relay.stall = 9
        words = ("lease", "acquire", "--pool", pool, "--release-timeout", "200ms", *where)
        with port.started(*words, url=relay.url) as process:
            (lease,) = eventually(lambda: port.leases(pool) or None)
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=SECONDS)
            assert process.returncode == 128 + signal.SIGTERM
    assert "withdrawn" not in said
    (path,) = [word for word in said.split() if word.startswith(os.sep)]
    assert Path(path).exists()
    if named:
        assert path == handle
    if again == "acquire":
        assert port.finished("lease", "acquire", "--pool", pool, "--handle", path).returncode == 0
        assert [one.id for one in port.leases(pool)] == [lease.id]
    assert port.finished("lease", "release", "--handle", path).returncode == 0
    assert port.leases(pool) == []
    assert not Path(path).exists()


def test_a_retry_that_is_refused_keeps_what_there_was(port: Harbour, handle: str) -> None:
    """The lease is still occupied, so the file keeps it."""
    pool = port.pool()
    assert port.finished("lease", "acquire", "--pool", pool, "--handle", handle).returncode == 0
    refused = port.finished("lease", "retry", "--handle", handle, "--token", "wrong")
    assert refused.returncode == 3
    assert len(port.leases(pool)) == 1
    assert port.finished("lease", "release", "--handle", handle).returncode == 0
    assert port.leases(pool) == []


def test_one_start_by_a_key_file_at_a_time(port: Harbour, tmp_path: Path) -> None:
    """A second one would have the same lease: it is refused until the first has ended."""
    pool, key = port.pool(limit=5), str(tmp_path / "key")
    words = ("run", "--pool", pool, "--key-file", key, "--")
    with port.started(*words, *WAITING) as first:
        line(first)
        second = port.finished(*words, "echo", "never")
        assert (second.returncode, second.stdout) == (125, "")
        assert "another process uses" in second.stderr
        assert len(port.leases(pool)) == 1
        assert first.communicate("\n", SECONDS)[0] == "done\n"
    assert port.finished(*words, "echo", "ran").stdout == "ran\n"
    assert [*tmp_path.iterdir()] == []


def test_a_release_shows_its_token(port: Harbour, handle: str) -> None:
    """A holder with a stale lease changes nothing."""
    pool = port.pool()
    with Relay(port.server.url) as relay:
        done = port.finished("run", "--pool", pool, "--", "true", url=relay.url)
        words = ("lease", "acquire", "--pool", pool, "--handle", handle)
        assert port.finished(*words, url=relay.url).returncode == 0
        released = port.finished("lease", "release", "--handle", handle, url=relay.url)
        assert (done.returncode, released.returncode) == (0, 0)
        deleted = [first.split()[1] for first in relay.heard if first.startswith("DELETE ")]
    ended = port.ended(pool)
    assert deleted == [f"/v1/leases/{lease.id}?token={lease.token}" for lease in ended]
    assert all(lease.token for lease in ended)
