"""Keystone's tokens, validated against a small stand-in for its v3 token API."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.core.errors import Code, Error
from moorage.faces.auth.keystone import ASKING_MAX, KeystoneAccess, KeystoneAuthenticator
from moorage.faces.v1.authorization import role_of
from moorage.faces.web import Caller
from moorage.service.access.roles import Role
from tests.e2e.support.server import serve
from tests.faces.auth.keystone_server import PASSWORD, USER, Keystone, serve_keystone
from tests.serve.wire import talk
from tests.service.running import ManualClock

TLS = Path(__file__).resolve().parents[2] / "serve"
SECOND = 1_000_000
BEGINNING = 1_800_000_000 * SECOND


@pytest.fixture
def keystone() -> Iterator[Keystone]:
    """Yield a Keystone without tokens."""
    with serve_keystone() as server:
        yield server


def authenticator_for(
    keystone: Keystone,
    clock: ManualClock,
    password: str = PASSWORD,
    admin_project: str = "admin",
    admin_domain: str = "Default",
) -> KeystoneAuthenticator:
    """Return an authenticator that uses this Keystone."""
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


def test_callers_of_tokens(keystone: Keystone) -> None:
    """User, project, roles and scope come from Keystone; an unknown token has no caller."""
    keystone.admit("t1", "Admin", "reader", project=ADMINS)
    keystone.admit("t2", "admin", system={"all": True})
    authenticator = authenticator_for(keystone, ManualClock(BEGINNING))

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


@pytest.mark.parametrize(("trust", "admitted"), [("none", False), ("file", True), ("any", True)])
def test_the_certificate_of_keystone(trust: str, admitted: bool) -> None:
    """It must be known: to the system, or from a file, unless it is not to be verified."""
    certificate = TLS / "tls-ec-cert.pem"
    with serve_keystone((certificate, TLS / "tls-ec-key.pem")) as keystone:
        keystone.admit("t1", "reader", project={"id": "p"})
        access = KeystoneAccess(
            url=keystone.url,
            username=USER,
            password=PASSWORD,
            project="service",
            domain="Default",
            admin_project="admin",
            admin_domain="Default",
            ca_file=str(certificate) if trust == "file" else None,
            seconds_max=5.0,
            cache_seconds_max=60.0,
            insecure=trust == "any",
        )
        authenticator = KeystoneAuthenticator(access, ManualClock(BEGINNING))

        async def act() -> None:
            caller = await authenticator.authenticate({"x-auth-token": "t1"})
            assert caller is not None

        if admitted:
            asyncio.run(act())
        else:
            with pytest.raises(Error) as raised:
                asyncio.run(act())
            assert raised.value.code is Code.UNAVAILABLE


ADMINS = {"id": "id-of-admins", "name": "admin", "domain": {"id": "default", "name": "Default"}}
"""The project whose admins administer Moorage by default."""

DOMAIN = {"domain": {"id": "d1", "name": "customer"}}


def test_roles_in_a_domain_have_no_effect(keystone: Keystone, tmp_path: Path) -> None:
    """Domain-scoped and unscoped tokens of admins and readers give access to neither API."""
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
        # As in Placement, whose policy is for projects.
        assert statuses(server.url, "system-admin") == [403, 200, 200]


def statuses(url: str, token: str) -> list[int]:
    """Return the statuses of a list of each API and of the list of tokens."""
    header = f"X-Auth-Token: {token}\r\n".encode()
    paths = (b"/resource_providers", b"/v1/providers", b"/v1/tokens")
    head = b"GET %s HTTP/1.1\r\nHost: localhost\r\n" + header + b"Connection: close\r\n\r\n"
    return [talk(url, head % path)[0].status for path in paths]


def test_answers_are_cached_for_a_minute(keystone: Keystone) -> None:
    """Answers are cached for at most a minute, valid tokens at most until they expire."""
    clock = ManualClock(BEGINNING)
    keystone.admit("long", "reader")
    keystone.admit("short", "reader", expires_at="2027-01-15T08:00:30.000000Z")  # BEGINNING + 30 s
    authenticator = authenticator_for(keystone, clock)

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


def test_concurrent_validations_are_coalesced(keystone: Keystone) -> None:
    """Concurrent requests with the same new token share one validation."""
    keystone.admit("t1", "reader")
    authenticator = authenticator_for(keystone, ManualClock(BEGINNING))
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


def test_a_lost_login_is_repeated(keystone: Keystone) -> None:
    """If Keystone no longer knows the service's token, the authenticator logs in again."""
    keystone.admit("t1", "reader")
    keystone.admit("t2", "reader")
    authenticator = authenticator_for(keystone, ManualClock(BEGINNING))

    async def act() -> None:
        assert await authenticator.authenticate({"x-auth-token": "t1"}) is not None
        keystone.services.clear()
        assert await authenticator.authenticate({"x-auth-token": "t2"}) is not None

    asyncio.run(act())
    assert keystone.logins == 2


def test_failures_of_keystone(keystone: Keystone) -> None:
    """If Keystone is down, refuses the login or sends nonsense, the error is 503, never a 401."""
    clock = ManualClock(BEGINNING)

    async def refused(authenticator: KeystoneAuthenticator) -> Code:
        with pytest.raises(Error) as error:
            await authenticator.authenticate({"x-auth-token": "t1"})
        return error.value.code

    keystone.admit("t1", "reader")
    assert asyncio.run(refused(authenticator_for(keystone, clock, "wrong"))) is Code.UNAVAILABLE
    keystone.away = True
    assert asyncio.run(refused(authenticator_for(keystone, clock))) is Code.UNAVAILABLE
    keystone.away = False
    for nonsense in ({"user": 5}, {}, {"user": {"id": "x"}, "expires_at": "soon"}):
        keystone.tokens["t1"] = nonsense
        assert asyncio.run(refused(authenticator_for(keystone, clock))) is Code.UNAVAILABLE


def test_keystone_in_a_served_moorage(keystone: Keystone, tmp_path: Path) -> None:
    """A server responds 503 while Keystone is down, but accepts cached tokens and its own."""
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


def project_scope(project: str, name: str, domain: str = "Default") -> dict[str, object]:
    """Return a token's project scope as Keystone sends it."""
    there = {"id": f"id-of-{domain}", "name": domain}
    return {"project": {"id": project, "name": name, "domain": there}}


@pytest.mark.parametrize(
    ("project", "foreign"),
    [
        (project_scope("a1", "admin"), set()),
        (project_scope("s1", "service"), {"admin"}),
        (project_scope("p1", "shop"), {"admin", "service"}),
        (project_scope("p1", "admin", "customer"), {"admin", "service"}),
        (project_scope("p1", "service", "customer"), {"admin", "service"}),
        ({"project": {"id": "p1", "name": "admin"}}, {"admin", "service"}),
        ({"system": {"all": True}}, set()),
    ],
)
def test_roles_count_only_in_trusted_projects(
    keystone: Keystone, project: dict[str, object], foreign: set[str]
) -> None:
    """Privileged roles count only in projects that the domain's administrator cannot create."""
    keystone.admit("t1", "admin", "service", "member", "reader", **project)
    found = asyncio.run(
        authenticator_for(keystone, ManualClock(BEGINNING)).authenticate({"x-auth-token": "t1"})
    )
    assert found is not None
    assert found.foreign == foreign
    assert found.roles == {"admin", "service", "member", "reader"}  # policies still see all roles
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
    """It is set by name and domain, by id, or `*` for any."""
    keystone.admit("t1", "admin", **project_scope("p1", "ops", "cloud"))
    authenticator = authenticator_for(
        keystone, ManualClock(BEGINNING), admin_project=admin_project, admin_domain=admin_domain
    )
    found = asyncio.run(authenticator.authenticate({"x-auth-token": "t1"}))
    assert found is not None
    assert (role_of(found) is Role.ADMIN) is believed


def test_unknown_tokens_do_not_delay_known_ones(keystone: Keystone) -> None:
    """However slow the validation of unknown tokens is, a recently valid token comes first."""
    clock = ManualClock(BEGINNING)
    keystone.admit("known", "reader", project=ADMINS)
    authenticator = authenticator_for(keystone, clock)
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


def test_a_flood_from_one_client_does_not_exclude_others(keystone: Keystone) -> None:
    """Any number of unknown tokens from one network delays another client's token only a little."""
    keystone.admit("fresh", "reader", project=ADMINS)
    authenticator = authenticator_for(keystone, ManualClock(BEGINNING))
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
        results = await asyncio.gather(*junk, return_exceptions=True)
        turned_away = [one for one in results if one is not None]
        assert [type(one) for one in turned_away] == [Error]
        assert asked_before < ASKING_MAX / 2

    asyncio.run(act())
