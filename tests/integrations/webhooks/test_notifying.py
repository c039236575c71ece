"""Posts arrive at least once, in order, whatever is killed or lost."""

import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from moorage.client import Client
from moorage.wire.admission import LeaseWanted, NeedWanted
from tests.client.leasing.pools import leases, waited_for
from tests.e2e.support.carried import eventually
from tests.e2e.support.server import NotStarted, Server
from tests.integrations.webhooks.conftest import Notifies
from tests.integrations.webhooks.receiver import Received, Receiver

SECRET = "correct horse battery staple"


class Hook:
    """A hook of one test, with a name of its own, and the processes that post to it."""

    def __init__(self, notifies: Notifies, folder: Path) -> None:
        self.name = f"ci-{uuid4().hex[:8]}"
        self.labels = {"notify": self.name, "build": "4711"}
        self.place = folder / f"state/{self.name}.cursor"
        self._notifies = notifies

    def started(self, url: str, *lines: str, **variables: str) -> Server:
        """Start, and wait until it follows: its place is stored."""
        table = "\n".join([f"[{self.name}]", f'url = "{url}/hook"', *lines])
        process = self._notifies(table, **variables)
        eventually(lambda: self.place.exists() or None)
        return process


@pytest.fixture
def hook(notifies: Notifies, tmp_path: Path) -> Hook:
    """Return a hook."""
    return Hook(notifies, tmp_path)


def events(posts: list[Received]) -> list[tuple[str, str]]:
    """Return what was posted, without repetitions."""
    seen = {post.id: (post.content["event"], post.content["lease"]["id"]) for post in posts}
    return [*seen.values()]


def test_grants_and_ends_are_posted_and_signed(
    client: Client, pool: str, receiver: Receiver, hook: Hook
) -> None:
    """Only those of leases that name the hook; each once, although leases change in between."""
    secret = 'secrets.sign = {variable = "SIGN"}\nsigned_with = "sign"'
    hook.started(receiver.url, secret, SIGN=SECRET)
    with client.lease(pool):
        pass
    with client.lease(pool, labels=hook.labels) as lease:
        client.admission.hold(lease.id, 600.0)
    granted, ended = receiver.arrived(2)
    assert events(receiver.posts) == [("granted", lease.id), ("ended", lease.id)]
    assert granted.content["lease"]["labels"]["build"] == "4711"
    assert ended.content["lease"]["cause"] == "released"
    assert lease.token not in granted.body.decode()
    for post in (granted, ended):
        assert post.headers["webhook-signature"] == post.signed(SECRET.encode())
        assert post.headers["webhook-signature"] != post.signed(b"another secret")


def test_a_receiver_that_is_gone_gets_everything_later(
    client: Client, pool: str, hook: Hook
) -> None:
    """Nothing is lost, and the order stays."""
    with Receiver() as receiver:
        port = receiver.port
    process = hook.started(f"http://127.0.0.1:{port}")
    ids = []
    for _ in range(3):
        with client.lease(pool, labels=hook.labels) as lease:
            ids.append(lease.id)
    process.wait_for("trying again")
    with Receiver(port) as receiver:
        posts = receiver.arrived(6)
    assert events(posts) == [(event, one) for one in ids for event in ("granted", "ended")]


@pytest.mark.parametrize("status", [0, 500, 503, 302, 401])
def test_a_post_without_success_is_repeated(
    client: Client, pool: str, hook: Hook, status: int
) -> None:
    """0 is a lost answer: the receiver has the post, and knows it again by its id.

    302 is the control: a redirection is refused for good, and never followed.
    """
    given = [status, 200]
    with Receiver(answer=lambda _: given.pop(0) if given else 200) as receiver:
        hook.started(receiver.url, 'events = ["granted"]')
        with client.lease(pool, labels=hook.labels) as first:
            receiver.arrived(1)
        with client.lease(pool, labels=hook.labels) as second:
            posts = receiver.arrived(2 if status == 302 else 3)
    assert events(posts) == [("granted", first.id), ("granted", second.id)]
    assert all(post.target == "/hook" for post in posts)
    if status != 302:
        assert posts[0].id == posts[1].id != posts[2].id


def test_a_folder_has_one_process(
    hook: Hook, notifies: Notifies, receiver: Receiver, tmp_path: Path
) -> None:
    """A second one would post all twice. The control: after the first has ended, it starts."""
    first = hook.started(receiver.url)
    with pytest.raises(NotStarted, match=r"state is in use by another process, .*notify\.lock"):
        hook.started(receiver.url)
    assert first.process.poll() is None
    first.stop(signal.SIGKILL)
    hook.started(receiver.url)


def notified(
    served: tuple[str, str], folder: Path, *words: str
) -> subprocess.CompletedProcess[str]:
    """Run `moorage notify` in a folder until it ends by itself."""
    return subprocess.run(
        words,
        env={**os.environ, "MOORAGE_URL": served[0], "MOORAGE_TOKEN": served[1]},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("blocks", ["0", "unlimited"])
def test_a_folder_that_cannot_be_written(
    served: tuple[str, str], receiver: Receiver, tmp_path: Path, blocks: str
) -> None:
    """It is refused at once: otherwise each post would be repeated for ever. 0 is a full disk.

    The control has room; it is refused for the next mistake, a place that is none.
    """
    (tmp_path / "hooks.toml").write_text(f'[ci]\nurl = "{receiver.url}"\n')
    (tmp_path / "ci.cursor").write_text("no place")
    command = f'ulimit -f {blocks}; exec "$0" -m moorage notify --hooks hooks.toml --state .'
    done = notified(served, tmp_path, "sh", "-c", command, sys.executable)
    assert done.returncode == 2
    assert ("cannot use .: File too large" in done.stderr) == (blocks == "0")
    assert ("is not a place in the feed" in done.stderr) == (blocks == "unlimited")


def test_a_folder_that_others_can_write(
    served: tuple[str, str], receiver: Receiver, tmp_path: Path
) -> None:
    """It is refused: they could have events left out, or posted again."""
    (tmp_path / "hooks.toml").write_text(f'[ci]\nurl = "{receiver.url}"\n')
    state = tmp_path / "state"
    state.mkdir()
    state.chmod(0o777)
    words = ("-m", "moorage", "notify", "--hooks", "hooks.toml", "--state", "state")
    done = notified(served, tmp_path, sys.executable, *words)
    assert done.returncode == 2
    assert "state is not used: everybody can write to state" in done.stderr


def test_killed_between_a_post_and_its_place(client: Client, pool: str, hook: Hook) -> None:
    """After the next start the post is repeated, with the same id, and nothing is left out."""
    process: Server | None = None

    def kill(_: Received) -> int:
        if len(receiver.posts) == 0:
            assert process is not None
            os.kill(process.pid, signal.SIGKILL)
            process.process.wait()
        return 200

    with Receiver(answer=kill) as receiver:
        process = hook.started(receiver.url)
        with client.lease(pool, labels=hook.labels) as lease:
            receiver.arrived(1)
        hook.started(receiver.url)
        posts = receiver.arrived(3)
    assert posts[0].id == posts[1].id
    assert events(posts) == [("granted", lease.id), ("ended", lease.id)]


def test_missed_changes(client: Client, pool: str, receiver: Receiver, hook: Hook) -> None:
    """If its place in the feed is gone, it posts the present state, with the same ids as before."""
    process = hook.started(receiver.url)
    with client.lease(pool, labels=hook.labels) as before:
        pass
    with client.lease(pool, labels=hook.labels) as lease:
        first = receiver.arrived(3)
        eventually(lambda: "+" in hook.place.read_text() or None)  # the time of the last event
        process.stop(signal.SIGKILL)
        hook.place.write_text(re.sub(r'"\d+\.', '"999.', hook.place.read_text()))
        hook.started(receiver.url).wait_for("missed")
        repeated = receiver.arrived(5)[3:]
    assert [post.id for post in repeated] == [first[1].id, first[2].id]
    assert events(receiver.arrived(6)[5:]) == [("ended", lease.id)]
    assert before.id == first[1].content["lease"]["id"]


def test_a_ticket_without_a_process_comes_to_its_turn(
    client: Client, served: tuple[str, str], pool: str, receiver: Receiver, hook: Hook
) -> None:
    """The grant is confirmed and posted; the job that is woken takes it over, as the page says.

    The control is the ticket before it: it names no hook, so nobody waits for it. And a job that
    comes too late does not run.
    """
    hook.started(receiver.url, "attend = true", 'events = ["granted"]')
    wanted = LeaseWanted(needs=[NeedWanted(pool=pool)], key="alone", patience=3600.0, ttl=600.0)
    with client.lease(pool):
        alone = client.admission.ask(wanted)
        ticket = client.admission.ask(replace(wanted, key="job-17", labels=hook.labels))
        assert ticket.state == "waiting"
        waited_for(client, pool, alone.id, by_a_program=False)
        waited_for(client, pool, ticket.id, by_a_program=True)
    (post,) = receiver.arrived(1)
    assert post.content["lease"]["key"] == "job-17"
    done = continued(served, pool, hook)
    assert (done.returncode, done.stdout) == (0, f"{ticket.id}\n")
    assert client.admission.lease(ticket.id).cause == "released"
    assert [one.id for one in leases(client, pool, "waiting")] == [alone.id]
    late = continued(served, pool, hook)
    assert (late.returncode != 0, late.stdout) == (True, "")
    assert "use a new key" in late.stderr


def continued(served: tuple[str, str], pool: str, hook: Hook) -> "subprocess.CompletedProcess[str]":
    """Run what a build runs when it continues; it prints its lease."""
    labels = [word for label in hook.labels.items() for word in ("--label", "=".join(label))]
    words = ["run", "--pool", pool, "--key", "job-17", "--ttl", "10m", "--patience", "1h", *labels]
    command = [sys.executable, "-m", "moorage", *words, "--", "sh", "-c", "echo $MOORAGE_LEASE_ID"]
    where = {"MOORAGE_URL": served[0], "MOORAGE_TOKEN": served[1]}
    return subprocess.run(
        command, env={**os.environ, **where}, capture_output=True, text=True, check=False
    )


def test_nothing_is_held_for_a_receiver_that_is_gone(client: Client, pool: str, hook: Hook) -> None:
    """A grant that cannot be posted is not confirmed: it is taken back, and others go first.

    The ticket keeps its place, and its turn comes when the receiver is back.
    """
    with Receiver() as receiver:
        port = receiver.port
    lines = ("attend = true", 'events = ["granted"]')
    process = hook.started(f"http://127.0.0.1:{port}", *lines)
    ticket = parked(client, pool, hook)
    process.wait_for("trying again")
    with client.lease(pool, wait=WAIT) as other:
        assert client.admission.lease(ticket).state == "waiting"
        process.wait_for("granted no longer")
        with Receiver(port) as receiver:
            waited_for(client, pool, ticket, by_a_program=True)
            other.release()
            (post,) = receiver.arrived(1)
    assert post.content["lease"]["id"] == ticket


def test_nobody_waits_for_what_was_refused(client: Client, pool: str, hook: Hook) -> None:
    """The build of the ticket is gone: the unit goes to others, and is not offered to it again."""
    with Receiver(answer=lambda _: 422) as receiver:
        process = hook.started(receiver.url, "attend = true", 'events = ["granted"]')
        ticket = parked(client, pool, hook)
        process.wait_for("gave up")
        with client.lease(pool, wait=WAIT):
            waited_for(client, pool, ticket, by_a_program=False)
        with client.lease(pool, wait=WAIT):
            assert len(receiver.posts) == 1


WAIT = "60s"
"""Longer than an unconfirmed grant lasts."""


def parked(client: Client, pool: str, hook: Hook) -> str:
    """Return a ticket without a process, whose turn has just come."""
    need = [NeedWanted(pool=pool)]
    wanted = LeaseWanted(needs=need, key=pool, labels=hook.labels, patience=3600.0, ttl=600.0)
    with client.lease(pool):
        ticket = client.admission.ask(wanted).id
        waited_for(client, pool, ticket, by_a_program=True)
    return ticket
