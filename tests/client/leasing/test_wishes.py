"""What a lease asks for besides units: labels that describe the program, and slots by label."""

import inspect
import os
import re
import socket
import subprocess
import sys
from getpass import getuser
from pathlib import Path
from uuid import uuid4

import pytest

from moorage.client import AsyncClient, Client, ConfigurationError, NotInTimeError, RefusedError
from moorage.client.leasing.options import options_of
from moorage.wire.labels import holder_of
from tests.client.leasing.pools import leases, pool_made
from tests.client.run.test_labels import GITHUB, RUN
from tests.client.single import BARE, ROOT

PAGE = (ROOT / "docs/howto/python-client.md").read_text()
CI = ("GITHUB_ACTIONS", "GITLAB_CI", "BUILDKITE", "PROW_JOB_ID", "JENKINS_URL", "BUILD_TAG")
HERE = {"host": socket.gethostname(), "user": getuser(), "pid": str(os.getpid())}
PROGRAM = """
from moorage.client import Client
with Client().lease("{pool}") as lease:
    pass
"""


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Remove what a CI has put into the environment."""
    for name in ("MOORAGE_LABELS", *CI):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


@pytest.fixture
def pool(client: Client) -> str:
    """Return a new pool with one unit."""
    return pool_made(client, f"wishes/{uuid4()}")


def labels_of(client: Client, pool: str) -> dict[str, str]:
    """Return the labels of the newest lease."""
    return leases(client, pool)[-1].labels


def test_a_lease_says_who_has_it(client: Client, pool: str, alone: pytest.MonkeyPatch) -> None:
    """Its labels are host, user, pid and command, in a CI also the job and its page; those of the
    caller win. So who waits learns for whom.
    """
    with client.lease(pool, labels={"team": "shop"}):
        found = labels_of(client, pool)
        assert set(found) == {*HERE, "command", "team"}
        assert HERE.items() <= found.items()
        with pytest.raises(
            NotInTimeError, match=f"{HERE['user']} on {HERE['host']}|{HERE['host']}"
        ):
            client.lease(pool, wait=0).acquire()
    for name, value in GITHUB.items():
        alone.setenv(name, value)
    with client.lease(pool, labels={"job": "mine", "pid": "0"}):
        found = labels_of(client, pool)
    assert (found["job"], found["build"], found["pid"]) == ("mine", RUN, "0")
    assert holder_of("ci", found) == f"job mine on {HERE['host']} (ci)"


def test_no_labels(client: Client, pool: str, alone: pytest.MonkeyPatch) -> None:
    """With `about=False`, and with MOORAGE_LABELS=0, none are added; another value is an error."""
    with client.lease(pool, labels={"a": "b"}, about=False):
        assert labels_of(client, pool) == {"a": "b"}
    alone.setenv("MOORAGE_LABELS", "0")
    with client.lease(pool):
        assert labels_of(client, pool) == {}
    alone.setenv("MOORAGE_LABELS", "perhaps")
    with pytest.raises(ConfigurationError, match="set 1 or 0"):
        client.lease(pool)
    client.lease(pool, about=False)


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["{folder}/deploy.py", "apply", "--password", "hunter2"], "deploy.py"),
        (["{folder}/deploy.py", "--password", "hunter2"], "deploy.py"),
        (["-m", "deploy", "https://alice:hunter2@x"], "deploy"),
        (["-m", "shop", "apply"], "shop"),
        (["-c", PROGRAM], Path(sys.executable).name),
        (["-c", PROGRAM, "hunter"], Path(sys.executable).name),
    ],
)
def test_the_name_of_the_program(
    client: Client,
    served: tuple[str, str],
    pool: str,
    tmp_path: Path,
    words: list[str],
    command: str,
) -> None:
    """Of the command only the program's name is sent, or that of the module."""
    text = PROGRAM.format(pool=pool)
    (tmp_path / "shop").mkdir()
    for name in ("deploy.py", "shop/__main__.py"):
        (tmp_path / name).write_text(text)
    filled = [word.format(folder=tmp_path, pool=pool) for word in words]
    subprocess.run(
        [sys.executable, *filled],
        env={
            **BARE,
            "MOORAGE_URL": served[0],
            "MOORAGE_TOKEN": served[1],
            "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]),
        },
        check=True,
    )
    assert labels_of(client, pool)["command"] == command


def test_a_key_stands_for_the_request_without_these_labels(client: Client, pool: str) -> None:
    """A program that was restarted has another pid; it is the same request all the same."""
    with client.lease(pool):
        for labels in ({"pid": "1"}, {"pid": "2"}):
            with pytest.raises(NotInTimeError):
                client.lease(pool, wait=0, key=pool, labels=labels).acquire()
        assert len(leases(client, pool, "waiting")) == 1


def test_slots_by_label(client: Client, pool: str) -> None:
    """The lease has a slot with the labels, says which one, and waits while all of these are held,
    although others are free.
    """
    regions = pool_made(client, f"{pool}/slots", limit=None, native_slots=True)
    slots = client.admission.slots(regions)
    slots.add(["eu-1"], {"region": "eu", "size": "big"})
    slots.add(["us-1"], {"region": "us"})
    with client.lease(regions, slot={"region": "eu", "size": "big"}) as lease:
        assert lease.slots == {regions: ["eu-1"]}
        with pytest.raises(NotInTimeError):
            client.lease(regions, slot={"region": "eu"}, wait=0).acquire()
        with client.lease(regions, wait=0) as other:
            assert other.slots == {regions: ["us-1"]}
    with client.lease({regions: 1, pool: 1}, slot={regions: {"region": "us"}}) as lease:
        assert lease.slots[regions] == ["us-1"]
    with pytest.raises(RefusedError) as refused:
        client.lease(regions, slot={"region": "moon"}).acquire()
    assert refused.value.code == "units_above_limit"
    with pytest.raises(RefusedError, match="slots"):
        client.lease(pool, slot={"region": "eu"}).acquire()


@pytest.mark.parametrize(
    ("pool", "slot", "said"),
    [
        ("a", {"region": 7}, "values of labels must be text"),
        ("a", {"a": {"region": "eu"}}, "values of labels must be text"),
        ({"a": 1, "b": 1}, {"region": "eu"}, "give the labels of each"),
        ({"a": 1}, {"b": {"region": "eu"}}, "no units of pool 'b'"),
    ],
)
def test_slots_that_are_not_valid(pool: object, slot: object, said: str) -> None:
    """The error says how labels of slots are given."""
    with pytest.raises(ValueError, match=said):
        options_of(pool, slot=slot)


def test_one_list_of_arguments() -> None:
    """Both clients take the same arguments, which help() shows, and the page explains each."""
    one, both = (inspect.signature(each.lease) for each in (Client, AsyncClient))
    assert one.parameters == both.parameters
    assert [*one.parameters] == ["self", *inspect.signature(options_of).parameters]
    assert one.parameters["wait"].default == "2h"
    assert [*re.findall(r"(?m)^\| `(\w+)` \| [^|]+ \| [^|]*\|$", PAGE)] == [*one.parameters][1:]
    for name in [*one.parameters][1:]:
        assert re.search(rf"(?m)^\s+{name}: ", Client.lease.__doc__), name
    with pytest.raises(TypeError, match="wiat"):
        Client("http://127.0.0.1:1", "t").lease("a", wiat=1)  # type: ignore[call-arg] # as above
