"""The native API's administration over HTTP: tokens, backup, check, refusals."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from moorage.core.errors import Code
from tests.e2e.server import serve
from tests.serve.wire import Answer, talk


class Admin(NamedTuple):
    """A server and the files beside its database."""

    url: str
    database: Path

    @property
    def secret(self) -> str:
        """The administrator's token."""
        return Path(f"{self.database}.token").read_text().strip()

    def ask(self, method: str, path: str, body: Any = None, token: str | None = None) -> Answer:
        """Send one request; by default as the administrator."""
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
    """A server with token authentication."""
    database = tmp_path_factory.mktemp("v1") / "moorage.sqlite"
    with serve(database) as server:
        yield Admin(server.url, database)


def test_tokens_are_made_listed_and_revoked(admin: Admin) -> None:
    """A token works from its making to its revocation, and is listed without its secret."""
    wanted = {"name": "bob", "role": "service", "project_id": "p1"}
    answer = admin.ask("POST", "/v1/tokens", wanted)
    assert answer.status == 201
    made = json.loads(answer.body)
    secret = made.pop("token")
    assert admin.ask("GET", "/resource_providers", None, secret).status == 200
    listed = json.loads(admin.ask("GET", "/v1/tokens").body)["tokens"]
    assert listed[-1] == made
    told = {"id": made["id"], "created_at": made["created_at"], "revoked_at": None}
    assert {**wanted, **told} == made
    assert secret not in str(listed)
    assert admin.ask("DELETE", f"/v1/tokens/{made['id']}").status == 204
    assert admin.ask("GET", "/resource_providers", None, secret).status == 401
    assert json.loads(admin.ask("GET", "/v1/tokens").body)["tokens"][-1]["revoked_at"]
    problem = admin.refused(404, "DELETE", f"/v1/tokens/{made['id']}")
    assert problem["code"] == Code.TOKEN_NOT_FOUND


@pytest.mark.parametrize("role", ["reader", "user", "service", "operator"])
def test_only_administrators_are_let_in(admin: Admin, role: str) -> None:
    """Every other role gets 403, strangers get 401."""
    made = admin.ask("POST", "/v1/tokens", {"name": role, "role": role, "project_id": "p"})
    secret = json.loads(made.body)["token"]
    for method, path in (
        ("GET", "/v1/tokens"),
        ("POST", "/v1/tokens"),
        ("DELETE", "/v1/tokens/x"),
        ("POST", "/v1/database/check"),
        ("POST", "/v1/database/backup"),
    ):
        assert admin.refused(403, method, path, None, secret)["code"] == "forbidden"
        assert admin.refused(401, method, path, None, "moorage_x")["code"] == "unauthenticated"


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
    """Whatever is no proper wish for a token gets 400 and is told why."""
    assert word in admin.refused(400, "POST", "/v1/tokens", body)["detail"]


def test_a_body_over_the_limit_names_it(admin: Admin) -> None:
    """413 names the limit and the setting."""
    problem = admin.refused(413, "POST", "/v1/tokens", b" " * 1_048_577)
    assert "1048576" in problem["detail"]
    assert "body_bytes_max" in problem["detail"]


def test_backup_and_check(admin: Admin, tmp_path: Path) -> None:
    """A backup is a new file with everything in it; a check of a sound ledger finds nothing."""
    target = tmp_path / "copy.sqlite"
    assert admin.ask("POST", "/v1/database/backup", {"path": str(target)}).status == 200
    assert target.stat().st_size > 0
    again = admin.refused(400, "POST", "/v1/database/backup", {"path": str(target)})
    assert "exists" in again["detail"]
    for path in ("copy.sqlite", "", "/no/such/folder/copy.sqlite", "/tmp/\0"):
        admin.refused(400, "POST", "/v1/database/backup", {"path": path})
    checked = admin.ask("POST", "/v1/database/check", {})
    assert json.loads(checked.body) == {"differences": []}


def test_unknown_addresses_and_methods(admin: Admin) -> None:
    """What is not in the table is a problem, too."""
    assert admin.refused(404, "GET", "/v1/nothing")["code"] == "unrouted"
    assert admin.refused(404, "GET", "/v1")["code"] == "unrouted"
    assert admin.refused(405, "GET", "/v1/database/check")["code"] == "unrouted"
