"""Without a server nothing is limited, and everybody says so in the same way."""

import asyncio
import logging
import sys
from pathlib import Path
from typing import Any

import pytest

from moorage.client import AsyncClient, Client, ConfigurationError
from tests.cli.command import moorage

PROGRAM = "from moorage.client import Client\nwith Client().lease('any'):\n    print('runs')"
TOLD = ("no server is set", "dry run", "without a lease", "without a limit")
UNLIMITED = "MOORAGE_UNLIMITED_WITHOUT_SERVER"


@pytest.fixture(autouse=True)
def no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set no server, and permit to run without a limit."""
    for name in ("MOORAGE_URL", "MOORAGE_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(UNLIMITED, "1")


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


@pytest.mark.parametrize("value", [None, "", "0", "no", "maybe"])
def test_not_permitted(value: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without the variable it is an error, for programs and for commands."""
    if value is None:
        monkeypatch.delenv(UNLIMITED)
    else:
        monkeypatch.setenv(UNLIMITED, value)
    for kind in (Client, AsyncClient):
        with pytest.raises(ConfigurationError, match=UNLIMITED):
            kind()
    words = ("run", "--pool", "any", "--", "true")
    done = moorage(*words, directory=tmp_path, **{UNLIMITED: value or ""})
    assert (done.returncode, UNLIMITED in done.stderr) == (125, True)


def test_both_say_the_same(tmp_path: Path) -> None:
    """On standard error, with the exit code of what runs."""
    where: dict[str, Any] = {"directory": tmp_path, UNLIMITED: "1"}
    python = moorage("run", "-p", "any", "--", sys.executable, "-c", PROGRAM, **where)
    assert (python.returncode, python.stdout) == (0, "runs\n")
    command, program = python.stderr.splitlines()
    for word in TOLD:
        assert word in command and word in program, python.stderr
