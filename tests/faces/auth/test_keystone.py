"""Keystone's tokens, against a small stand-in for Keystone's v3 token API."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.core.errors import Code, Error
from moorage.faces.auth.keystone import ASKING_MAX, KeystoneAccess, KeystoneAuthenticator
from moorage.faces.v1.roles import role_of
from moorage.faces.web import Caller
from moorage.service.access.roles import Role
from tests.e2e.support.server import serve
from tests.faces.auth.keystone_server import PASSWORD, USER, Keystone, running
from tests.serve.wire import talk
from tests.service.running import HandClock

SECOND = 1_000_000
BEGINNING = 1_800_000_000 * SECOND


@pytest.fixture
def keystone() -> Iterator[Keystone]:
    """A Keystone that knows nobody yet."""
    with running() as server:
        yield server


def made(
    keystone: Keystone,
    clock: HandClock,
    password: str = PASSWORD,
    admin_project: str = "admin",
    admin_domain: str = "Default",
) -> KeystoneAuthenticator:
    """An authenticator that asks this Keystone."""
    access = KeystoneAccess(
        url=keystone.url,
        username=USER,
        password=password,
        project="service",
        domain="Default",
        admin_project=admin_project,
        admin_domain=admin_domain,
        ca_file=None,
        seconds_max=5.0,
        cache_seconds_max=60.0,
    )
    return KeystoneAuthenticator(access, clock)


def test_callers_are_known_by_their_tokens(keystone: Keystone) -> None:
    """User, project, roles and scope come from Keystone; an unknown token is nobody's."""
    keystone.admit("t1", "Admin", "reader", project=ADMINS)
    keystone.admit("t2", "admin", system={"all": True})
    authenticator = made(keystone, HandClock(BEGINNING))

    async def act() -> None:
        assert await authenticator.authenticate({"x-auth-token": "t1"}) == Caller(
            "id-of-t1", "id-of-admins", frozenset({"admin", "reader"})
        )
        assert await authenticator.authenticate({"x-auth-token": "t2"}) == Caller(
            "id-of-t2", None, frozenset({"admin"}), system_scope=True
        )
        for nobody in ("t3", "", "é", "x" * 20_000):
            assert await authenticator.authenticate({"x-auth-token": nobody}) is None
        assert await authenticator.authenticate({}) is None

    asyncio.run(act())
    assert keystone.logins == 1


ADMINS = {"id": "id-of-admins", "name": "admin", "domain": {"id": "default", "name": "Default"}}
"""The project whose admins administer Moorage, by default."""

DOMAIN = {"domain": {"id": "d1", "name": "customer"}}


def test_roles_in_a_domain_count_for_nothing(keystone: Keystone, tmp_path: Path) -> None:
    """Domain-scoped and unscoped tokens of admins and readers open neither API."""
    keystone.admit("domain-admin", "admin", "reader", "service", **DOMAIN)
    keystone.admit("domain-reader", "reader", **DOMAIN)
    keystone.admit("unscoped", "admin")
    keystone.admit("system-admin", "admin", system={"all": True})
    keystone.admit("project-admin", "admin", project=ADMINS)
    options = ["--auth", "keystone", "--keystone-url", keystone.url]
    database = tmp_path / "moorage.sqlite"
    with serve(database, *options, MOORAGE_KEYSTONE_PASSWORD=PASSWORD) as server:
        for token in ("domain-admin", "domain-reader", "unscoped"):
            assert statuses(server.url, token) == [403, 403, 403], token
        assert statuses(server.url, "project-admin") == [200, 200, 200]
        # As the original: its policy is for projects.
        assert statuses(server.url, "system-admin") == [403, 200, 200]


def statuses(url: str, token: str) -> list[int]:
    """Read a page of each API, and the tokens of this server."""
    header = f"X-Auth-Token: {token}\r\n".encode()
    paths = (b"/resource_providers", b"/v1/providers", b"/v1/tokens")
    head = b"GET %s HTTP/1.1\r\nHost: localhost\r\n" + header + b"Connection: close\r\n\r\n"
    return [talk(url, head % path)[0].status for path in paths]


def test_answers_are_believed_for_a_minute(keystone: Keystone) -> None:
    """Good and bad tokens are asked about once a minute, and no longer than they are valid."""
    clock = HandClock(BEGINNING)
    keystone.admit("long", "reader")
    keystone.admit("short", "reader", expires_at="2027-01-15T08:00:30.000000Z")  # in 30 seconds
    authenticator = made(keystone, clock)

    async def known(token: str) -> bool:
        return await authenticator.authenticate({"x-auth-token": token}) is not None

    async def act() -> None:
        assert [await known(token) for token in ("long", "short", "none")] == [True, True, False]
        clock.at += 29 * SECOND
        assert [await known(token) for token in ("long", "short", "none")] == [True, True, False]
        assert keystone.asked == 3
        clock.at += 1 * SECOND
        assert [await known(token) for token in ("long", "short", "none")] == [True, False, False]
        assert keystone.asked == 4
        keystone.tokens.clear()
        keystone.admit("none", "reader")
        clock.at += 30 * SECOND
        assert [await known(token) for token in ("long", "none")] == [False, True]

    asyncio.run(act())


def test_equal_questions_are_asked_once(keystone: Keystone) -> None:
    """Many requests with one new token wait for one validation."""
    keystone.admit("t1", "reader")
    authenticator = made(keystone, HandClock(BEGINNING))
    keystone.gate.clear()

    async def act() -> None:
        asking = [
            asyncio.create_task(authenticator.authenticate({"x-auth-token": "t1"}))
            for _ in range(50)
        ]
        done, _ = await asyncio.wait(asking, timeout=0.1)
        assert not done
        keystone.gate.set()
        assert len({await one for one in asking}) == 1

    asyncio.run(act())
    assert keystone.asked == 1


def test_a_lost_login_is_made_anew(keystone: Keystone) -> None:
    """When Keystone forgets our own token, we log in again and go on."""
    keystone.admit("t1", "reader")
    keystone.admit("t2", "reader")
    authenticator = made(keystone, HandClock(BEGINNING))

    async def act() -> None:
        assert await authenticator.authenticate({"x-auth-token": "t1"}) is not None
        keystone.services.clear()
        assert await authenticator.authenticate({"x-auth-token": "t2"}) is not None

    asyncio.run(act())
    assert keystone.logins == 2


def test_keystone_that_cannot_tell(keystone: Keystone) -> None:
    """Away, refusing us, or talking nonsense: unavailable, never a caller and never a 401."""
    clock = HandClock(BEGINNING)

    async def refused(authenticator: KeystoneAuthenticator) -> Code:
        with pytest.raises(Error) as error:
            await authenticator.authenticate({"x-auth-token": "t1"})
        return error.value.code

    keystone.admit("t1", "reader")
    assert asyncio.run(refused(made(keystone, clock, "wrong"))) is Code.UNAVAILABLE
    keystone.away = True
    assert asyncio.run(refused(made(keystone, clock))) is Code.UNAVAILABLE
    keystone.away = False
    for nonsense in ({"user": 5}, {}, {"user": {"id": "x"}, "expires_at": "soon"}):
        keystone.tokens["t1"] = nonsense
        assert asyncio.run(refused(made(keystone, clock))) is Code.UNAVAILABLE


def test_keystone_in_a_served_moorage(keystone: Keystone, tmp_path: Path) -> None:
    """A server asks Keystone; it answers 503 while Keystone is away, and its own administrator's
    token works all the same.
    """
    keystone.admit("t1", "admin", project={"id": "p1"})
    database = tmp_path / "moorage.sqlite"
    options = ["--auth", "keystone", "--keystone-url", keystone.url]
    with serve(database, *options, MOORAGE_KEYSTONE_PASSWORD=PASSWORD) as server:

        def status(token: str) -> int:
            sent = (
                "GET /resource_providers HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                f"X-Auth-Token: {token}\r\n\r\n"
            )
            return talk(server.url, sent.encode())[0].status

        assert (status("t1"), status("t2")) == (200, 401)
        keystone.away = True
        assert (status("t1"), status("t3")) == (200, 503)
        assert status(Path(f"{database}.token").read_text().strip()) == 200


def scoped(project: str, name: str, domain: str = "Default") -> dict[str, object]:
    """A token's project as Keystone tells it."""
    there = {"id": f"id-of-{domain}", "name": domain}
    return {"project": {"id": project, "name": name, "domain": there}}


@pytest.mark.parametrize(
    ("project", "foreign"),
    [
        (scoped("a1", "admin"), set()),
        (scoped("s1", "service"), {"admin"}),
        (scoped("p1", "shop"), {"admin", "service"}),
        (scoped("p1", "admin", "customer"), {"admin", "service"}),
        (scoped("p1", "service", "customer"), {"admin", "service"}),
        ({"project": {"id": "p1", "name": "admin"}}, {"admin", "service"}),
        ({"system": {"all": True}}, set()),
    ],
)
def test_where_a_role_was_given_decides_what_it_means(
    keystone: Keystone, project: dict[str, object], foreign: set[str]
) -> None:
    """Roles that a domain's administrator can give in a project of his mean nothing to Moorage."""
    keystone.admit("t1", "admin", "service", "member", "reader", **project)
    found = asyncio.run(made(keystone, HandClock(BEGINNING)).authenticate({"x-auth-token": "t1"}))
    assert found is not None
    assert found.foreign == foreign
    assert found.roles == {"admin", "service", "member", "reader"}  # as policies see them
    role = role_of(found)
    wanted = Role.ADMIN if "admin" not in foreign else Role.OPERATOR
    assert role is (Role.USER if "service" in foreign else wanted)


@pytest.mark.parametrize(
    ("admin_project", "admin_domain", "believed"),
    [
        ("ops", "cloud", True),
        ("ops", "id-of-cloud", True),
        ("p1", "x", True),
        ("*", "x", True),
        ("ops", "Default", False),
        ("admin", "cloud", False),
    ],
)
def test_the_administrators_project_is_a_setting(
    keystone: Keystone, admin_project: str, admin_domain: str, believed: bool
) -> None:
    """By name in a domain, by id, or any."""
    keystone.admit("t1", "admin", **scoped("p1", "ops", "cloud"))
    authenticator = made(
        keystone, HandClock(BEGINNING), admin_project=admin_project, admin_domain=admin_domain
    )
    found = asyncio.run(authenticator.authenticate({"x-auth-token": "t1"}))
    assert found is not None
    assert (role_of(found) is Role.ADMIN) is believed


def test_unknown_tokens_do_not_delay_known_ones(keystone: Keystone) -> None:
    """However many of them Keystone is slow to judge, who was valid a minute ago is let in."""
    clock = HandClock(BEGINNING)
    keystone.admit("known", "reader", project=ADMINS)
    authenticator = made(keystone, clock)
    keystone.slow = "junk"

    async def act() -> None:
        assert await authenticator.authenticate({"x-auth-token": "known"}) is not None
        clock.at += 61 * SECOND
        keystone.gate.clear()
        junk = [
            asyncio.create_task(authenticator.authenticate({"x-auth-token": f"junk-{n}"}))
            for n in range(ASKING_MAX)
        ]
        await asyncio.sleep(0)
        with pytest.raises(Error) as refused:
            await authenticator.authenticate({"x-auth-token": "junk-more"})
        assert refused.value.code is Code.OVERLOADED
        async with asyncio.timeout(5):
            assert await authenticator.authenticate({"x-auth-token": "known"}) is not None
        assert not any(one.done() for one in junk)
        keystone.gate.set()
        assert await asyncio.gather(*junk) == [None] * ASKING_MAX

    asyncio.run(act())


def test_a_flood_from_one_client_keeps_no_newcomer_out(keystone: Keystone) -> None:
    """Who shows any number of unknown tokens, from whatever address of its network, delays the
    first token of another client by a few questions only.
    """
    keystone.admit("fresh", "reader", project=ADMINS)
    authenticator = made(keystone, HandClock(BEGINNING))
    keystone.slow = "junk"

    async def act() -> None:
        keystone.gate.clear()
        junk = [
            asyncio.create_task(
                authenticator.authenticate({"x-auth-token": f"junk-{n}"}, f"2001:db8::{n:x}")
            )
            for n in range(ASKING_MAX)
        ]
        await asyncio.sleep(0)
        with pytest.raises(Error) as refused:
            await authenticator.authenticate({"x-auth-token": "junk-more"}, "2001:db8::ffff")
        assert refused.value.code is Code.OVERLOADED
        fresh = asyncio.create_task(
            authenticator.authenticate({"x-auth-token": "fresh"}, "2001:db8:0:1::1")
        )
        await asyncio.sleep(0)
        assert not fresh.done()
        keystone.gate.set()
        assert await fresh is not None
        asked_before = keystone.asked
        told = await asyncio.gather(*junk, return_exceptions=True)
        turned_away = [one for one in told if one is not None]
        assert [type(one) for one in turned_away] == [Error]
        assert asked_before < ASKING_MAX / 2

    asyncio.run(act())
