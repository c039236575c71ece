"""Tokens in files: what runs for long uses the one that its file has now."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moorage.client import Client
from moorage.client.transport import RefusedError, Transport
from tests.client import single
from tests.e2e.run.test_run import WAITING
from tests.e2e.support.carried import SECONDS, Harbour, eventually, line


class Rotated:
    """A token in a file, which is replaced: the old one is invalid at once."""

    def __init__(self, port: Harbour, file: Path) -> None:
        self._tokens = Transport(port.server.url, port.token)
        made = self._ask("/v1/tokens", {"name": "ci", "role": "user", "project_id": "ci"})
        self.id, self.secret = made["id"], made["token"]
        self.file = file
        file.write_text(f"{self.secret}\n")

    def _ask(self, path: str, body: dict[str, Any]) -> Any:
        return self._tokens.request("POST", path, body)

    def rotate(self, write: Callable[[Path, str], object]) -> None:
        """Replace the token; return when the old one is not valid any more."""
        old = Transport(self._tokens.url, self.secret)
        made = self._ask(f"/v1/tokens/{self.id}/rotate", {"grace": 1.0})
        self.id, self.secret = made["id"], made["token"]
        write(self.file, self.secret)
        eventually(lambda: refused(old))


def refused(transport: Transport) -> bool | None:
    """Return whether a token is not valid."""
    try:
        transport.request("GET", "/v1/pools")
    except RefusedError as refusal:
        return True if refusal.status == 401 else None
    return None


def replaced(file: Path, text: str) -> None:
    """Write another file in place of it, as Kubernetes does."""
    file.with_suffix(".new").write_text(text)
    os.replace(file.with_suffix(".new"), file)


def rewritten(file: Path, text: str) -> None:
    """Write the same file again: for a moment it is empty."""
    file.write_text(text)


def missing(file: Path, text: str) -> None:
    """Delete it, and write it."""
    file.unlink()
    file.write_text(text)


@pytest.mark.parametrize(
    ("write", "way"),
    [(replaced, "option"), (rewritten, "option"), (missing, "option"), (replaced, "variable")],
)
def test_a_lease_lives_on(
    port: Harbour, tmp_path: Path, write: Callable[[Path, str], object], way: str
) -> None:
    """After a rotation the run renews its lease, and releases it at its end."""
    pool, token = port.pool(ttl=4.0), Rotated(port, tmp_path / "token")
    words = ["run", "-p", pool, "--on-unreachable", "lost"]
    where = {"MOORAGE_URL": port.server.url}
    if way == "option":
        words += ["--token-file", str(token.file)]
    else:
        where["MOORAGE_TOKEN_FILE"] = str(token.file)
    with single.started(*words, "--", *WAITING, **where) as run:
        line(run)
        token.rotate(write)
        port.outlasts_its_ttl(pool)
        out, err = run.communicate("\n", SECONDS)
    assert (run.returncode, out) == (0, "done\n"), err
    assert [one.cause for one in port.ended(pool)] == ["released"]


def test_a_ticket_waits_on(port: Harbour, tmp_path: Path) -> None:
    """While the new token is not written yet, the ticket is kept; then it is granted."""
    pool, token = port.pool(), Rotated(port, tmp_path / "token")
    with port.started("run", "-p", pool, "--", *WAITING) as holder:
        line(holder)
        words = ("run", "-p", pool, "--token-file", str(token.file), "--", "echo", "ran")
        with single.started(*words, MOORAGE_URL=port.server.url) as waiter:
            (ticket,) = port.waiting(pool)
            token.rotate(lambda *_: None)
            holder.communicate("\n", SECONDS)
            replaced(token.file, token.secret)
            out, err = waiter.communicate(timeout=SECONDS)
    assert (waiter.returncode, out) == (0, "ran\n"), err
    assert [one.id for one in port.ended(pool)][-1] == ticket.id


def test_a_loop_renews_on(port: Harbour, tmp_path: Path) -> None:
    """`renew --loop` follows the file, too."""
    pool, token = port.pool(ttl=4.0), Rotated(port, tmp_path / "token")
    words = ("--token-file", str(token.file), "--handle", str(tmp_path / "h"))
    where = {"MOORAGE_URL": port.server.url}
    assert single.finished("lease", "acquire", "-p", pool, *words, **where).returncode == 0
    with single.started("lease", "renew", "--loop", *words, **where) as loop:
        token.rotate(replaced)
        port.outlasts_its_ttl(pool)
        loop.terminate()
    assert single.finished("lease", "release", *words, **where).returncode == 0


def test_a_block_lives_on(port: Harbour, tmp_path: Path) -> None:
    """A Python client follows its file; one token or file is given, not both."""
    pool, token = port.pool(ttl=4.0), Rotated(port, tmp_path / "token")
    client = Client(port.server.url, token_file=str(token.file))
    with client.lease(pool) as lease:
        token.rotate(missing)
        port.outlasts_its_ttl(pool)
        lease.check()
    assert [one.cause for one in port.ended(pool)] == ["released"]
    with pytest.raises(ValueError, match="exclude each other"):
        Client(port.server.url, "x", token_file=str(token.file))


def test_a_token_of_the_environment_stays(port: Harbour, tmp_path: Path) -> None:
    """It cannot be read again; the message says which can. A file is named in its message."""
    pool, token = port.pool(), Rotated(port, tmp_path / "token")
    token.rotate(lambda *_: None)
    old = token.file.read_text().strip()
    words = ("run", "-p", pool, "--", "true")
    done = single.finished(*words, MOORAGE_URL=port.server.url, MOORAGE_TOKEN=old)
    assert (done.returncode, "MOORAGE_TOKEN_FILE" in done.stderr) == (121, True), done.stderr
    file = {"MOORAGE_TOKEN_FILE": str(token.file)}
    done = single.finished(*words, MOORAGE_URL=port.server.url, **file)
    assert (done.returncode, f"in {token.file}" in done.stderr) == (121, True), done.stderr
