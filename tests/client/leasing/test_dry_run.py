"""Without a server nothing is limited, and everybody says so in the same way."""

import asyncio
import logging
import sys
from pathlib import Path

import pytest

from moorage.client import AsyncClient, Client, ConfigurationError
from tests.cli.command import moorage

PROGRAM = "from moorage.client import Client\nwith Client().lease('any'):\n    print('runs')"
TOLD = ("no server is set", "dry run", "without a lease", "without a limit", "MOORAGE_REQUIRE=1")


@pytest.fixture(autouse=True)
def no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set no server."""
    for name in ("MOORAGE_URL", "MOORAGE_TOKEN", "MOORAGE_REQUIRE"):
        monkeypatch.delenv(name, raising=False)


def test_a_block_runs(caplog: pytest.LogCaptureFixture) -> None:
    """Each block says so again; nothing of the lease is there, and nothing of it is lost."""
    client = Client()
    for _ in range(2):
        with caplog.at_level(logging.WARNING), client.lease("any", key="a", outcome=True) as lease:
            assert (lease.id, lease.token, lease.slots, lease.lost) == ("", "", {}, None)
            assert not lease.over
            lease.check()
            lease.report("failed", "why")
    assert len(caplog.messages) == 2
    assert all(word in caplog.messages[0] for word in TOLD)
    lease = client.lease({"a": 1, "b": 2}).acquire()
    lease.release()
    lease.release()
    with pytest.raises(KeyError), client.lease("any"):
        raise KeyError("x")


def test_a_block_of_a_task_runs(caplog: pytest.LogCaptureFixture) -> None:
    """Those of asyncio do the same."""

    async def block() -> str:
        async with AsyncClient().lease("any") as lease:
            return lease.id

    assert asyncio.run(block()) == ""
    assert all(word in caplog.messages[0] for word in TOLD)


def test_what_is_no_lease() -> None:
    """It has no answer to give."""
    client = Client()
    for part in (client.admission.pools, client.ledger.providers, client.fleet.agents):
        with pytest.raises(ConfigurationError, match="no server is set"):
            list(part())
    with pytest.raises(ValueError, match="at least one unit"):
        client.lease("any", units=0)


@pytest.mark.parametrize("value", ["1", "yes"])
def test_required(value: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One variable makes it an error, for programs and for commands."""
    monkeypatch.setenv("MOORAGE_REQUIRE", value)
    for kind in (Client, AsyncClient):
        with pytest.raises(ConfigurationError, match="MOORAGE_REQUIRE"):
            kind()
    words = ("run", "--pool", "any", "--", "true")
    done = moorage(*words, directory=tmp_path, MOORAGE_REQUIRE=value)
    assert (done.returncode, "MOORAGE_REQUIRE" in done.stderr) == (125, True)


def test_both_say_the_same(tmp_path: Path) -> None:
    """On standard error, with the exit code of what runs."""
    python = moorage("run", "-p", "any", "--", sys.executable, "-c", PROGRAM, directory=tmp_path)
    assert (python.returncode, python.stdout) == (0, "runs\n")
    command, program = python.stderr.splitlines()
    for word in TOLD:
        assert word in command and word in program, python.stderr
