"""The native API's administration over HTTP: tokens, backup, check, errors."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from moorage.core.errors import Code
from tests.e2e.support.server import serve
from tests.serve.wire import Answer, talk


class Admin(NamedTuple):
    """A server and the files next to its database."""

    url: str
    database: Path

    @property
    def secret(self) -> str:
        """The administrator's token."""
        return Path(f"{self.database}.token").read_text().strip()

    def ask(self, method: str, path: str, body: Any = None, token: str | None = None) -> Answer:
        """Send one request, by default as the administrator."""
        raw = (
            b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        )
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            f"X-Auth-Token: {self.secret if token is None else token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(raw)}\r\n\r\n"
        )
        (answer,) = talk(self.url, head.encode() + raw)
        assert b"x-openstack-request-id: req-" in answer.head
        return answer

    def refused(self, status: int, method: str, path: str, *more: Any) -> dict[str, Any]:
        """Send a request that is refused; return the problem."""
        answer = self.ask(method, path, *more)
        assert answer.status == status, answer
        assert b"content-type: application/problem+json" in answer.head
        problem: dict[str, Any] = json.loads(answer.body)
        assert problem["status"] == status
        assert set(problem) == {"type", "title", "status", "detail", "code", "request_id"}
        assert problem["request_id"].encode() in answer.head
        return problem


@pytest.fixture(scope="module")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Admin]:
    """Yield a server with token authentication."""
    database = tmp_path_factory.mktemp("v1") / "moorage.sqlite"
    with serve(database) as server:
        yield Admin(server.url, database)


def test_tokens_are_made_listed_and_revoked(admin: Admin) -> None:
    """A token works until it is revoked, and is listed without its secret."""
    wanted = {"name": "bob", "role": "service", "project_id": None, "expires_in": 3600}
    answer = admin.ask("POST", "/v1/tokens", wanted)
    assert answer.status == 201
    made = json.loads(answer.body)
    secret = made.pop("token")
    assert admin.ask("GET", "/resource_providers", None, secret).status == 200
    listed = json.loads(admin.ask("GET", "/v1/tokens").body)["tokens"]
    assert listed[-1].pop("used_at"), "a use must be shown at once"
    assert {**listed[-1], "used_at": None} == made
    response = {name: made[name] for name in ("id", "created_at", "expires_at")}
    nothing = dict.fromkeys(("revoked_at", "rotated_at", "used_at"))
    del wanted["expires_in"]
    assert {**wanted, **response, **nothing, "scope": {}} == made
    assert made["created_at"] < made["expires_at"]
    assert secret not in str(listed)
    assert admin.ask("DELETE", f"/v1/tokens/{made['id']}").status == 204
    assert admin.ask("GET", "/resource_providers", None, secret).status == 401
    assert json.loads(admin.ask("GET", "/v1/tokens").body)["tokens"][-1]["revoked_at"]
    problem = admin.refused(404, "DELETE", f"/v1/tokens/{made['id']}")
    assert problem["code"] == Code.TOKEN_NOT_FOUND


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b"", "JSON"),
        (b"{", "JSON"),
        (b'{"name": "a", "name": "b", "role": "admin"}', "more than once"),
        (b'{"name": "\\u0000", "role": "admin"}', "NUL"),
        (b'{"name": "\xff", "role": "admin"}', "UTF-8"),
        (b"[" * 100_000, "deep"),
        ([], "object"),
        ({"name": "a"}, "role"),
        ({"name": "a", "role": "king"}, "king"),
        ({"name": 5, "role": "admin"}, "name"),
        ({"name": "a", "role": "admin", "more": 1}, "more"),
        ({"name": "a", "role": "user"}, "project"),
    ],
)
def test_bad_bodies_are_refused_with_the_reason(admin: Admin, body: Any, word: str) -> None:
    """An invalid request for a token gets a 400 with the reason."""
    assert word in admin.refused(400, "POST", "/v1/tokens", body)["detail"]


def test_the_error_of_a_large_body_names_the_limit(admin: Admin) -> None:
    """The 413 names the limit and its setting."""
    problem = admin.refused(413, "POST", "/v1/tokens", b" " * 1_048_577)
    assert "1048576" in problem["detail"]
    assert "body_bytes_max" in problem["detail"]


def test_check(admin: Admin) -> None:
    """A check of a sound ledger finds nothing."""
    checked = admin.ask("POST", "/v1/database/check", {})
    assert json.loads(checked.body) == {"differences": []}


BACKUP = "/v1/database/backup"
NO_NAMES = ("", ".", "..", ".hidden", "a/b", "/tmp/x", "../x", "a\0b", "-x", "a b", "x" * 201)


def test_backups_are_written_to_the_folder(tmp_path: Path) -> None:
    """The caller chooses only the name of a new file; the audit row is written before the copy."""
    database, folder = tmp_path / "moorage.sqlite", tmp_path / "kept"
    folder.mkdir()
    with serve(database, "--backup-directory", str(folder)) as server:
        admin = Admin(server.url, database)
        response = json.loads(admin.ask("POST", BACKUP, {"name": "one.sqlite"}).body)
        assert response == {"path": str(folder / "one.sqlite"), "written": True}
        assert (folder / "one.sqlite").stat().st_size > 0
        again = admin.refused(400, "POST", BACKUP, {"name": "one.sqlite"})
        assert "exists" in again["detail"]
        entries = json.loads(admin.ask("GET", "/v1/audit?limit=3").body)["entries"]
        actions = [entry["action"] for entry in entries]
        assert actions == ["database.backup_failed", "database.backup", "database.backup"]
        for name in NO_NAMES:
            admin.refused(400, "POST", BACKUP, {"name": name})
        for body in ({}, {"name": "x", "copied_to": "/x"}, {"path": "/x"}):
            admin.refused(400, "POST", BACKUP, body)
    assert {path.name for path in folder.iterdir()} == {"one.sqlite"}
    assert not list(tmp_path.glob("*x"))


def test_backups_without_a_folder(admin: Admin, tmp_path: Path) -> None:
    """By default the server writes no file for a caller, but audits copies that callers make."""
    problem = admin.refused(400, "POST", BACKUP, {"name": "one.sqlite"})
    assert "backup_directory" in problem["detail"]
    target = tmp_path / "copy.sqlite"
    noted = {"copied_to": str(target)}
    for more, action in (({}, "database.backup"), ({"failed": "why"}, "database.backup_failed")):
        response = json.loads(admin.ask("POST", BACKUP, {**noted, **more}).body)
        assert response == {"path": str(target), "written": False}
        assert not target.exists()
        (entry,) = json.loads(admin.ask("GET", "/v1/audit?limit=1").body)["entries"]
        assert (entry["action"], entry["target"]) == (action, str(target))
    assert entry["after"] == {"reason": "why"}
    admin.refused(400, "POST", BACKUP, {"name": "one.sqlite", "failed": "why"})
    for path in ("copy.sqlite", "", "/tmp/\0"):
        admin.refused(400, "POST", BACKUP, {"copied_to": path})


def test_the_log_names_callers_and_operations(tmp_path: Path) -> None:
    """Audit rows are logged at any level, access lines have the caller; neither has a secret."""
    database = tmp_path / "moorage.sqlite"
    with serve(database, "--log-level", "error") as server:
        admin = Admin(server.url, database)
        wanted = {"name": "bob", "role": "reader", "project_id": None}
        made = json.loads(admin.ask("POST", "/v1/tokens", wanted).body)
        secret = made["token"]
        assert admin.ask("GET", "/v1/pools", None, secret).status == 200
        assert admin.ask("GET", "/resource_providers", None, secret).status == 403
        assert admin.ask("GET", "/v1/pools", None, "moorage_nobody").status == 401
        server.wait_for("/v1/pools", times=2)
        server.stop()
        log = "".join(server.said)
    rows = [line for line in server.said if "INFO moorage.audit: " in line]
    response = [json.loads(line.partition("moorage.audit: ")[2]) for line in rows]
    assert [row["action"] for row in response] == ["token.create", "token.create"]
    assert response[1]["target"] == made["id"]
    assert response[1]["after"] == wanted
    assert response[1]["who"] == "admin"
    lines = [line for line in server.said if "moorage.access" in line]
    callers = [line.partition("moorage.access: ")[2].split()[2] for line in lines]
    bob = f"token:{made['id']}"
    assert callers == [f"token:{response[0]['target']}", bob, bob, "-"]
    assert "moorage_" not in log.replace("moorage_nobody", "")
    assert secret not in log


def test_unknown_addresses_and_methods(admin: Admin) -> None:
    """They are answered with a problem document, too."""
    assert admin.refused(404, "GET", "/v1/nothing")["code"] == "unrouted"
    assert admin.refused(404, "GET", "/v1")["code"] == "unrouted"
    assert admin.refused(405, "GET", "/v1/database/check")["code"] == "unrouted"
