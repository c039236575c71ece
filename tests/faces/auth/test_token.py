"""Moorage's own tokens: who holds one, what its role means, when it stops to work."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from moorage.core.errors import Code, Error
from moorage.faces.auth.headers import token_of
from moorage.faces.auth.token import ROLES, TokenAuthenticator
from moorage.faces.placement.policy import RESHAPE, USAGES, allows
from moorage.faces.web import Caller
from moorage.service.access import SECRET_PREFIX, Role
from moorage.service.app import Service
from moorage.service.audit import Actor
from moorage.service.clock import SystemClock

TESTER = Actor("tester", None, "test")


def with_service(path: Path, act: Callable[[Service], Awaitable[None]]) -> None:
    """Run a test on a real service with a database of its own."""

    def fail(error: Exception) -> None:
        raise AssertionError from error

    async def run() -> None:
        service = await Service.open(
            f"sqlite:///{path / 'moorage.sqlite'}", SystemClock(), on_fatal=fail
        )
        try:
            await act(service)
        finally:
            await service.stop()

    asyncio.run(run())


def test_a_token_names_its_holder(tmp_path: Path) -> None:
    """The holder of a token is known by name, project and roles; nobody by a wrong one."""

    async def act(service: Service) -> None:
        authenticator = TokenAuthenticator(service.access)
        secret, token = await service.access.create("bob", "user", "p1", by=TESTER)
        assert secret.startswith(SECRET_PREFIX)
        assert token.role is Role.USER
        holder = Caller("bob", "p1", frozenset({"member", "reader"}), token_id=token.id)
        for _ in range(2):  # from the database, then from memory
            assert await authenticator.authenticate({"x-auth-token": secret}) == holder
        assert await authenticator.authenticate({"authorization": f"Bearer {secret}"}) == holder
        for wrong in ("", "admin", secret[:-1], secret + "A", "\udcff"):
            assert await authenticator.authenticate({"x-auth-token": wrong}) is None
        assert await authenticator.authenticate({}) is None

    with_service(tmp_path, act)


def test_a_name_cannot_pass_for_a_project_and_a_name(tmp_path: Path) -> None:
    """Who owns a lease is told by project and name: nobody else can be called so."""

    async def act(service: Service) -> None:
        for name in ("p1/bob", "boskos:janitor", "lease-proxy"):
            with pytest.raises(Error) as refused:
                await service.access.create(name, "service", by=TESTER)
            assert refused.value.code is Code.INVALID

    with_service(tmp_path, act)


def test_a_revoked_token_stops_to_work_at_once(tmp_path: Path) -> None:
    """After the revocation's answer the token is refused, although it was remembered."""

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
        ("bob", "king", None),
        ("bob", "user", None),
        ("bob", "reader", ""),
    ],
)
def test_wrong_wishes_are_refused(
    tmp_path: Path, name: str, role: str, project: str | None
) -> None:
    """A token without a proper name, role or project is not made."""

    async def act(service: Service) -> None:
        with pytest.raises(Error) as refused:
            await service.access.create(name, role, project, by=TESTER)
        assert refused.value.code is Code.INVALID
        assert await service.access.list() == []

    with_service(tmp_path, act)


def test_what_roles_may_do_at_placement() -> None:
    """Operators and services may do everything, administrators all but what Placement keeps to
    services, readers and users see their own project's usages.
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
    """X-Auth-Token counts before Authorization; only the Bearer scheme carries a token."""
    assert token_of({"x-auth-token": "a", "authorization": "Bearer b"}) == "a"
    assert token_of({"authorization": "bearer  b "}) == "b"
    assert token_of({"authorization": "Basic b"}) is None
    assert token_of({"authorization": "Bearer "}) is None
    assert token_of({}) is None
