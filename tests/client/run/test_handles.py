"""Handle files and key files: private, atomic, and used by one process at a time."""

import json
import stat
import threading
from pathlib import Path

import pytest

from moorage.client.run.api_types import LeaseRequest, lease_of
from moorage.client.run.handles.file import EntryKey, Handle, HandleEntry, HandleError
from moorage.client.run.lease.acquire import NotGrantedError
from moorage.client.run.lease.idempotency_keys import FileKey, GivenKey, OwnKey
from moorage.client.run.locks import lock_path, locked
from moorage.client.run.private_file import write_private
from tests.client.run.test_words import lease_json
from tests.client.single import finished

WISH = LeaseRequest((("a", 2), ("b", 1)), ttl=60.0, hold=1.5, priority=3, labels=(("x", "y"),))


def test_a_handle_keeps_what_it_is_given(tmp_path: Path) -> None:
    """All fields and their order are kept; only the owner may read the file."""
    handle = Handle(str(tmp_path / "handle"))
    assert handle.entries() == []
    entries = [
        HandleEntry("k1", WISH),
        HandleEntry("k2", LeaseRequest((("c", 1),)), "id2", "1.2.3", ("s1", "s2"), "soon", "later"),
    ]
    with handle.locked():
        for entry in entries:
            handle.put(entry)
    assert handle.entries() == entries
    assert stat.S_IMODE(Path(handle.path).stat().st_mode) == 0o600
    newer = entries[0]._replace(id="id1")
    with handle.locked():
        assert handle.change(entries[0], newer)
        assert not handle.change(HandleEntry("k3", WISH), newer)
    assert handle.entries() == [newer, entries[1]]


def test_a_handle_of_an_older_version_is_read(tmp_path: Path) -> None:
    """Missing fields have their former defaults, so that no lease is forgotten."""
    handle = Handle(str(tmp_path / "handle"))
    handle.put(HandleEntry("k1", WISH, "id1"))
    answer = json.loads(Path(handle.path).read_text())
    del answer["leases"][0]["retrying"]
    del answer["leases"][0]["wish"]["patience"]
    del answer["leases"][0]["wish"]["usual_ttl"]
    Path(handle.path).write_text(json.dumps(answer))
    assert handle.entries() == [HandleEntry("k1", WISH, "id1")]


def test_an_attempt_is_answered_or_not() -> None:
    """Data about the previous lease does not count as the answer to a retry."""
    entry = HandleEntry("k1", WISH)
    assert not entry.answered
    held = entry.granted(lease_of(lease_json()))
    assert (held.answered, held.id, held.token) == (True, "l1", "1.2.3")
    retrying = held._replace(key="k2", retrying=True)
    assert not retrying.answered
    assert not retrying.renewed(lease_of(lease_json())).answered
    again = retrying.granted(lease_of(lease_json(id="l2")))
    assert (again.answered, again.id, again.key) == (True, "l2", "k2")


def test_a_lock_is_exclusive(tmp_path: Path) -> None:
    """Without `wait` a taken lock raises; deleting the file of a taken lock does no harm."""
    path = str(tmp_path / "key")
    with locked(path):
        with pytest.raises(BlockingIOError), locked(path, wait=False):
            pass
        Path(lock_path(path)).unlink()
    with locked(path, wait=False):
        assert Path(lock_path(path)).exists()


def test_a_handle_without_leases_is_deleted(tmp_path: Path) -> None:
    """Without leases the file is deleted, and nothing else remains in the folder."""
    handle = Handle(str(tmp_path / "handle"))
    for key in ("k1", "k2"):
        with handle.locked():
            handle.put(HandleEntry(key, WISH))
    for entry in handle.entries():
        with handle.locked():
            handle.drop(entry)
    assert list(tmp_path.iterdir()) == []
    with handle.locked():
        handle.drop(HandleEntry("k1", WISH))


@pytest.mark.parametrize("text", ["{}", "[1]", "no json", '{"leases": [{}]}', "\xff"])
def test_a_file_of_another_format_is_refused(tmp_path: Path, text: str) -> None:
    """The file is neither used nor overwritten."""
    path = tmp_path / "handle"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(HandleError, match="not a file of leases"):
        Handle(str(path)).entries()
    with pytest.raises(HandleError):
        Handle(str(path)).put(HandleEntry("k", WISH))
    assert path.read_text(encoding="latin-1") == text
    refused = finished("lease", "cat", "--handle", str(path))
    assert (refused.returncode, refused.stdout) == (1, "")


def test_one_process_at_a_time(tmp_path: Path) -> None:
    """Concurrent changes lose nothing, also while the file is deleted and created."""
    handle = Handle(str(tmp_path / "handle"))

    def work(name: str) -> None:
        for number in range(20):
            entry = HandleEntry(f"{name}-{number}", WISH)
            with handle.locked():
                handle.put(entry)
            if number % 2:
                with handle.locked():
                    handle.drop(entry)

    threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = {f"t{n}-{number}" for n in range(4) for number in range(0, 20, 2)}
    assert {entry.key for entry in handle.entries()} == expected


def test_a_failed_write_changes_nothing(tmp_path: Path) -> None:
    """The old content stays complete, and no temporary file remains."""
    path = tmp_path / "key"
    write_private(str(path), "before")
    with pytest.raises(UnicodeEncodeError):
        write_private(str(path), "after \ud800")
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_key_file_is_shared_between_processes(tmp_path: Path) -> None:
    """The key is saved before it is used, shared with the next process, and deleted when spent."""
    path = tmp_path / "key"
    key = FileKey(str(path)).current()
    assert path.read_text() == f"{key}\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = FileKey(str(path))
    assert again.current() == key
    assert again.renew()
    assert again.current() != key
    assert path.read_text() == f"{again.current()}\n"
    again.spend()
    again.spend()
    assert not path.exists()


def test_keys_of_an_attempt() -> None:
    """A generated key can be replaced, a given one cannot."""
    own = OwnKey()
    first = own.current()
    assert own.current() == first
    assert own.renew()
    assert own.current() != first
    given = GivenKey("host-1+deploy+1")
    assert not given.renew()
    assert given.current() == "host-1+deploy+1"


def test_a_new_attempt_is_in_the_handle_before_it_is_made(tmp_path: Path) -> None:
    """The new key replaces the old one in the file before it is used."""
    handle = Handle(str(tmp_path / "handle"))
    handle.put(HandleEntry("k1", WISH, "id1"))
    keys = EntryKey(handle, handle.entries()[0])
    assert keys.renew()
    (entry,) = handle.entries()
    assert (entry.key, entry.id, entry.wish) == (keys.current(), None, WISH)
    keys.spend()
    assert handle.entries() == []
    with pytest.raises(NotGrantedError, match="another process has released"):
        keys.renew()  # a released lease must not be requested again
    assert not Path(handle.path).exists()


UNLIMITED = {"MOORAGE_UNLIMITED_WITHOUT_SERVER": "1"}


def test_slots_are_printed_without_a_server(tmp_path: Path) -> None:
    """One per line, or separated by commas; a missing handle prints nothing and is no error."""
    handle = Handle(str(tmp_path / "handle"))
    handle.put(HandleEntry("k1", WISH, "id1", "t", ("s1", "s2")))
    handle.put(HandleEntry("k2", WISH, "id2", "t", ("s3",)))
    assert finished("lease", "cat", "--handle", handle.path).stdout == "s1\ns2\ns3\n"
    assert (
        finished("lease", "cat", "--handle", handle.path, "--format", "csv").stdout == "s1,s2,s3\n"
    )
    for nothing in ("", str(tmp_path / "none")):
        done = finished("lease", "cat", "--handle", nothing)
        assert (done.returncode, done.stdout) == (0, "")


def test_dry_runs_succeed(tmp_path: Path) -> None:
    """If they may, nothing is done, only a handle's path is printed, and the exit code is 0."""
    path = str(tmp_path / "handle")
    got = finished("lease", "acquire", "--pool", "p", "--handle", path, **UNLIMITED)
    assert (got.returncode, got.stdout) == (0, f"{path}\n")
    for name in ("release", "renew", "status"):
        assert finished("lease", name, "--handle", path).returncode == 2, "the control"
        done = finished("lease", name, "--handle", path, "--unlimited-without-server")
        assert (done.returncode, done.stdout) == (0, ""), name
        assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_json_is_one_document(tmp_path: Path) -> None:
    """With `--json` standard output is JSON, also in a dry run."""
    path = str(tmp_path / "handle")
    words = ("lease", "acquire", "--pool", "p", "--handle", path, "--json")
    assert json.loads(finished(*words, **UNLIMITED).stdout) == {"leases": []}
