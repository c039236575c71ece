"""Moorage's own tokens: their holder, the meaning of their roles, and when they expire."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from moorage.core.errors import Code, Error
from moorage.faces.auth.headers import token_of
from moorage.faces.auth.token import ROLES, TokenAuthenticator
from moorage.faces.placement.policy import RESHAPE, USAGES, allows
from moorage.faces.web import Caller
from moorage.service.access.roles import Role, Scope, ScopedRole
from moorage.service.access.token import SECRET_PREFIX
from moorage.service.access.tokens import USED_EVERY, AccessTokens
from moorage.service.app import Service
from moorage.service.audit_entries import Actor
from moorage.service.clock import SystemClock
from moorage.store.open import open_engine
from tests.service.running import ManualClock

TESTER = Actor("tester", None, "test")


def with_service(path: Path, act: Callable[[Service], Awaitable[None]]) -> None:
    """Run a test on a real service with its own database."""

    def fail(error: Exception) -> None:
        raise AssertionError from error

    async def run() -> None:
        service = await Service.start(
            open_engine(f"sqlite:///{path / 'moorage.sqlite'}"), SystemClock(), on_fatal=fail
        )
        try:
            await act(service)
        finally:
            await service.stop()

    asyncio.run(run())


def test_callers_by_their_tokens(tmp_path: Path) -> None:
    """A valid token has its holder's name, project and roles; a wrong one has no caller."""

    async def act(service: Service) -> None:
        authenticator = TokenAuthenticator(service.access)
        secret, token = await service.access.create("bob", "user", "p1", by=TESTER)
        assert secret.startswith(SECRET_PREFIX)
        assert token.role is Role.USER
        holder = Caller("bob", "p1", frozenset({"member", "reader"}), token_id=token.id)
        for _ in range(2):  # from the database, then from the cache
            assert await authenticator.authenticate({"x-auth-token": secret}) == holder
        assert await authenticator.authenticate({"authorization": f"Bearer {secret}"}) == holder
        for wrong in ("", "admin", secret[:-1], secret + "A", "\udcff"):
            assert await authenticator.authenticate({"x-auth-token": wrong}) is None
        assert await authenticator.authenticate({}) is None

    with_service(tmp_path, act)


def test_a_name_does_not_look_like_a_project_and_a_name(tmp_path: Path) -> None:
    """The owner of a lease is `PROJECT/NAME`, so no token's name may look like it."""

    async def act(service: Service) -> None:
        for name in ("p1/bob", "boskos:janitor", "lease-proxy"):
            with pytest.raises(Error) as refused:
                await service.access.create(name, "service", by=TESTER)
            assert refused.value.code is Code.INVALID

    with_service(tmp_path, act)


def test_a_revoked_token_is_refused_at_once(tmp_path: Path) -> None:
    """As soon as the revocation is answered the token is refused, although it was cached."""

    async def act(service: Service) -> None:
        secret, token = await service.access.create("bob", "admin", by=TESTER)
        other, _ = await service.access.create("eve", "reader", by=TESTER)
        assert await service.access.find(secret) == token
        await service.access.revoke(token.id, by=TESTER)
        assert await service.access.find(secret) is None
        assert await service.access.find(other) is not None
        for unknown in (token.id, "nothing"):
            with pytest.raises(Error) as refused:
                await service.access.revoke(unknown, by=TESTER)
            assert refused.value.code is Code.TOKEN_NOT_FOUND
        revoked, valid = await service.access.list()
        assert (revoked.name, valid.name) == ("bob", "eve")
        assert revoked.revoked_at is not None
        assert valid.revoked_at is None

    with_service(tmp_path, act)


@pytest.mark.parametrize(
    ("name", "role", "project"),
    [
        ("", "admin", None),
        ("n" * 256, "admin", None),
        ("a\nb", "admin", None),
        ("a\x1b[2Jb", "admin", None),
        ("bob", "user", "p\x9b31m"),
        ("bob", "king", None),
        ("bob", "user", None),
        ("bob", "reader", ""),
    ],
)
def test_invalid_tokens_are_refused(
    tmp_path: Path, name: str, role: str, project: str | None
) -> None:
    """A token without a valid name, role or project is not created."""

    async def act(service: Service) -> None:
        with pytest.raises(Error) as refused:
            await service.access.create(name, role, project, by=TESTER)
        assert refused.value.code is Code.INVALID
        assert await service.access.list() == []

    with_service(tmp_path, act)


@pytest.mark.parametrize(
    ("name", "project", "expected"),
    [
        ("a\x1bb", "p", "A token's name must not contain U+001B."),
        ("bob", "p\n1", "A token's project must not contain U+000A."),
    ],
)
def test_the_refusal_of_a_name_names_the_character(
    tmp_path: Path, name: str, project: str, expected: str
) -> None:
    """A control character is invisible, so the error names its code point."""

    async def act(service: Service) -> None:
        with pytest.raises(Error) as refused:
            await service.access.create(name, "user", project, by=TESTER)
        assert (refused.value.code, refused.value.message) == (Code.INVALID, expected)

    with_service(tmp_path, act)


def test_what_roles_may_do_at_placement() -> None:
    """Placement's rules apply to the roles of tokens.

    Operators and services may do everything, administrators all but what Placement reserves for
    services; readers and users see the usages of their own project.
    """
    able = {
        role: [
            allows("default", "resource_providers:create", caller, None),
            allows("new", RESHAPE, caller, None),
            allows("default", USAGES, caller, "p1"),
            allows("default", USAGES, caller, "p2"),
        ]
        for role in Role
        for caller in [Caller("x", "p1", ROLES[role])]
    }
    assert able == {
        Role.READER: [False, False, True, False],
        Role.USER: [False, False, True, False],
        Role.SERVICE: [True, True, True, True],
        Role.OPERATOR: [True, True, True, True],
        Role.ADMIN: [True, False, True, True],
    }


def test_where_tokens_are_found() -> None:
    """X-Auth-Token overrides Authorization; only the Bearer scheme carries a token."""
    assert token_of({"x-auth-token": "a", "authorization": "Bearer b"}) == "a"
    assert token_of({"authorization": "bearer  b "}) == "b"
    assert token_of({"authorization": "Basic b"}) is None
    assert token_of({"authorization": "Bearer "}) is None
    assert token_of({}) is None


@pytest.mark.parametrize("role", ["service", "operator", "admin"])
def test_only_readers_and_users_have_a_project(tmp_path: Path, role: str) -> None:
    """For other roles a project would have no effect, so it is refused."""

    async def act(service: Service) -> None:
        with pytest.raises(Error) as refused:
            await service.access.create("x", role, "p1", by=TESTER)
        assert refused.value.code is Code.INVALID
        assert "omit the project" in refused.value.message

    with_service(tmp_path, act)


@pytest.mark.parametrize("project", ["boskos:ci", "boskos:", "lease-proxy"])
def test_a_project_does_not_look_like_clients_of_boskos(tmp_path: Path, project: str) -> None:
    """`boskos:ci/user` would look like an owner of Boskos."""

    async def act(service: Service) -> None:
        with pytest.raises(Error) as refused:
            await service.access.create("user", "user", project, by=TESTER)
        assert refused.value.code is Code.INVALID

    with_service(tmp_path, act)


def with_manual_clock(path: Path, act: Callable[[Service, ManualClock], Awaitable[None]]) -> None:
    """Run a test on a service with a manual clock."""
    clock = ManualClock()

    async def run() -> None:
        service = await Service.start(
            open_engine(f"sqlite:///{path / 'moorage.sqlite'}"), clock, on_fatal=lambda _: None
        )
        try:
            await act(service, clock)
        finally:
            await service.stop()

    asyncio.run(run())


def test_a_token_expires(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It expires on time although it is cached; a later use is logged."""

    async def act(service: Service, clock: ManualClock) -> None:
        access = service.access
        secret, token = await access.create("bob", "service", by=TESTER, lasts=10)
        assert token.expires_at == token.created_at + 10
        clock.at += 9
        assert await access.find(secret) is not None
        clock.at += 1
        for _ in range(3):
            assert await access.find(secret) is None
        lines = [one.getMessage() for one in caplog.records if one.name == "moorage.auth"]
        assert lines == [f"refused the token {token.id} (bob): it has expired"]
        assert secret not in caplog.text
        for wrong in (0, -1):
            with pytest.raises(Error) as refused:
                await access.create("bob", "service", by=TESTER, lasts=wrong)
            assert refused.value.code is Code.INVALID

    with_manual_clock(tmp_path, act)


def test_use_of_a_revoked_token_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The log names the token's id, at most once a minute; an unknown token is not logged."""

    async def act(service: Service, clock: ManualClock) -> None:
        secret, token = await service.access.create("bob", "service", by=TESTER)
        await service.access.revoke(token.id, by=TESTER)
        for wait in (0, 59_000_000, 1_000_000):
            clock.at += wait
            assert await service.access.find(secret) is None
            assert await service.access.find("moorage_nobody") is None
        lines = [one.getMessage() for one in caplog.records if one.name == "moorage.auth"]
        assert lines == [f"refused the token {token.id} (bob): it was revoked"] * 2

    with_manual_clock(tmp_path, act)


def test_rotation(tmp_path: Path) -> None:
    """Both tokens are valid during the grace, then only the new one, for the old one's lifetime.

    A token can be rotated only once.
    """

    async def act(service: Service, clock: ManualClock) -> None:
        access = service.access
        scope = {"pool": ["a", "b/*"]}
        old, first = await access.create("bob", "janitor", by=TESTER, scope=scope, lasts=1_000)
        clock.at += 100
        assert await access.find(old) is not None
        new, second = await access.rotate(first.id, grace=50, by=TESTER)
        assert (second.name, second.role, second.scope) == ("bob", first.role, first.scope)
        assert second.expires_at == second.created_at + 1_000
        clock.at += 49
        assert [await access.find(one) is not None for one in (old, new)] == [True, True]
        clock.at += 1
        assert [await access.find(one) is not None for one in (old, new)] == [False, True]
        for again in (first.id, "nothing"):
            with pytest.raises(Error) as refused:
                await access.rotate(again, grace=50, by=TESTER)
            assert refused.value.code is Code.TOKEN_NOT_FOUND
        _, third = await access.rotate(second.id, grace=0, lasts=7, by=TESTER)
        assert third.expires_at == third.created_at + 7
        assert await access.find(new) is None
        await access.revoke(third.id, by=TESTER)
        with pytest.raises(Error) as refused:
            await access.rotate(third.id, grace=0, by=TESTER)
        assert refused.value.code is Code.TOKEN_NOT_FOUND
        rows, _ = await service.audit.page(None, 100)
        actions = [row.action for row in rows]
        assert sorted(actions) == ["token.create", "token.revoke", "token.rotate", "token.rotate"]

    with_manual_clock(tmp_path, act)


def test_a_grace_does_not_extend_a_token(tmp_path: Path) -> None:
    """A token that expires within the grace keeps its end."""

    async def act(service: Service, clock: ManualClock) -> None:
        old, first = await service.access.create("bob", "service", by=TESTER, lasts=10)
        await service.access.rotate(first.id, grace=1_000, by=TESTER)
        clock.at += 10
        assert await service.access.find(old) is None

    with_manual_clock(tmp_path, act)


def test_the_last_use_is_stored_once_an_hour(tmp_path: Path) -> None:
    """Uses are written at most once an hour; lists still show the last use at once."""

    async def used(service: Service) -> list[int | None]:
        times = [token.used_at for token in await service.access.list()]
        await service.access.note_uses()
        anew = AccessTokens(service.engine, service.transactor, service.clock)
        assert [token.used_at for token in await anew.list()] == times
        return times

    async def act(service: Service, clock: ManualClock) -> None:
        secret, _ = await service.access.create("bob", "service", by=TESTER)
        clock.at += 1  # so that the list has it first
        await service.access.create("eve", "service", by=TESTER)
        assert await used(service) == [None, None]
        first = clock.at
        for _ in range(3):
            assert await service.access.find(secret) is not None
            assert await used(service) == [first, None]
            clock.at += USED_EVERY // 3
        assert await service.access.find(secret) is not None
        assert await used(service) == [first + USED_EVERY // 3 * 3, None]

    with_manual_clock(tmp_path, act)


@pytest.mark.parametrize(
    ("role", "scope"),
    [
        ("janitor", {}),
        ("janitor", {"pool": []}),
        ("janitor", {"pool": ["a"], "agent": ["b"]}),
        ("janitor", {"agent": ["b"]}),
        ("janitor", {"pool": [""]}),
        ("janitor", {"pool": ["*"]}),
        ("janitor", {"pool": ["/*"]}),
        ("janitor", {"pool": ["a*b"]}),
        ("janitor", {"pool": ["a\n"]}),
        ("janitor", {"pool": [f"p{n}" for n in range(65)]}),
        ("reader", {"pool": ["a"]}),
    ],
)
def test_wrong_scopes_are_refused(tmp_path: Path, role: str, scope: dict[str, list[str]]) -> None:
    """A scope names what its role is bound to, but not everything; unscoped roles have none."""

    async def act(service: Service) -> None:
        with pytest.raises(Error) as refused:
            await service.access.create("x", role, by=TESTER, scope=scope)
        assert refused.value.code is Code.INVALID
        assert await service.access.list() == []

    with_service(tmp_path, act)


def test_what_a_scope_covers() -> None:
    """Full names, and names below a prefix; neither the prefix itself nor its neighbours."""
    scope = Scope(ScopedRole.JANITOR, ("a", "b/*", "c/d/*"))
    assert all(scope.covers(name) for name in ("a", "b/x", "b/x/y", "c/d/e"))
    assert not any(scope.covers(name) for name in ("", "A", "a/x", "b", "bx", "c", "c/d", "c/dd"))
