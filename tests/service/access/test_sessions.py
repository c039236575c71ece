"""Sessions of the dashboard end in time, with their token, and on every process."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moorage.core.clock import HOUR, MINUTE, SECOND
from moorage.service.access.sessions import IDLE, LIFE, NOTED_EVERY, OF_TOKEN_MAX
from moorage.service.access.sign_in_attempts import FAILURES_MAX, SOURCES_MAX, SignInAttempts
from moorage.service.access.token import Token, digest_of
from moorage.service.app import Service
from moorage.service.audit_entries import Actor
from moorage.store.access.sessions import session_by_sha256
from moorage.store.open import open_engine
from tests.service.running import CLASSES, TESTER, TRAITS, ManualClock, fatal
from tests.support import cluster


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of an empty database of each engine."""
    return cluster.fresh() if request.param == "postgresql" else f"sqlite:///{tmp_path}/m.sqlite"


def play(url: str, scenario: Callable[[list[Service], ManualClock], Awaitable[None]]) -> None:
    """Run a scenario with a service, or with two on a shared database, and one clock."""

    async def run() -> None:
        clock = ManualClock()
        async with AsyncExitStack() as stack:
            services = []
            for _ in range(2 if url.startswith("postgresql") else 1):
                service = await started(url, clock)
                stack.push_async_callback(service.stop)
                services.append(service)
            await scenario(services, clock)

    asyncio.run(run())


async def started(url: str, clock: ManualClock) -> Service:
    """Start a service with a clock that the test moves."""
    return await Service.start(open_engine(url), clock, CLASSES, TRAITS, on_fatal=fatal)


async def token_made(service: Service, name: str = "reader", lasts: int | None = None) -> Token:
    """Create a token of a reader."""
    _, token = await service.access.create(name, "reader", by=TESTER, lasts=lasts)
    return token


def test_a_session_lasts_until_its_ends(url: str) -> None:
    """Twelve hours at most, an hour without use; looking without using does not prolong it."""

    async def scenario(services: list[Service], clock: ManualClock) -> None:
        here, there = services[0].access.sessions, services[-1].access.sessions
        token = await token_made(services[0])
        used = await here.open(token, source="x")
        idle = await here.open(token, source="x")
        looked = await here.open(token, source="x")
        for _ in range(int(LIFE / (IDLE / 2)) - 1):
            clock.at += IDLE // 2
            assert await there.find(used) is not None
            await here.find(looked, used=False)
        assert await there.find(idle) is None
        assert await there.find(looked) is None
        clock.at += IDLE // 2
        assert await here.find(used) is None, "twelve hours are over"

    play(url, scenario)


def test_a_session_ends_with_its_token(url: str) -> None:
    """Revoked, expired, or rotated and its grace over: at once, on each process."""

    async def scenario(services: list[Service], clock: ManualClock) -> None:
        here, there = services[0].access, services[-1].access
        revoked, expiring = (
            await token_made(services[0]),
            await token_made(services[0], "e", HOUR // 2),
        )
        rotated = await token_made(services[0], "r")
        secrets = [
            await here.sessions.open(one, source="x") for one in (revoked, expiring, rotated)
        ]
        assert all([await there.sessions.find(one) for one in secrets])
        await here.revoke(revoked.id, by=TESTER)
        await here.rotate(rotated.id, grace=MINUTE, by=TESTER)
        found = [await there.sessions.find(one) is not None for one in secrets]
        assert found == [False, True, True]
        clock.at += MINUTE
        assert await there.sessions.find(secrets[2]) is None
        clock.at += HOUR // 2
        assert await there.sessions.find(secrets[1]) is None

    play(url, scenario)


def test_uses_are_written_once_a_minute(url: str) -> None:
    """A page that is read every second writes no row each time."""

    async def scenario(services: list[Service], clock: ManualClock) -> None:
        sessions = services[0].access.sessions
        secret = await sessions.open(await token_made(services[0]), source="x")
        before = services[0].index.revision
        stored = []
        for _ in range(3 * NOTED_EVERY // SECOND):
            clock.at += SECOND
            assert await sessions.find(secret) is not None
            plan = session_by_sha256(digest_of(secret))
            row = await services[0].engine.read(plan)
            assert row is not None
            stored.append(row.used_at)
        assert len({*stored}) == 4
        assert services[0].index.revision == before, "a use is no change of the ledger"

    play(url, scenario)


def test_a_token_has_a_bounded_number_of_sessions(url: str) -> None:
    """One more ends the oldest; those of other tokens stay."""

    async def scenario(services: list[Service], clock: ManualClock) -> None:
        sessions = services[0].access.sessions
        token, other = await token_made(services[0]), await token_made(services[0], "other")
        kept = await sessions.open(other, source="x")
        secrets = []
        for _ in range(OF_TOKEN_MAX + 1):
            clock.at += 1
            secrets.append(await sessions.open(token, source="x"))
        found = [await sessions.find(one) is not None for one in secrets]
        assert found == [False] + [True] * OF_TOKEN_MAX
        assert await sessions.find(kept) is not None

    play(url, scenario)


def test_ended_sessions_are_deleted(url: str) -> None:
    """The chore deletes only those that have ended; sessions survive a restart."""

    async def scenario(services: list[Service], clock: ManualClock) -> None:
        sessions, token = services[0].access.sessions, await token_made(services[0])
        await sessions.open(token, source="x")
        clock.at += IDLE
        secret = await sessions.open(token, source="x")
        assert await sessions.forget() == 1
        assert await sessions.forget() == 0
        if len(services) == 1:
            await services[0].stop()
            services[0] = await started(url, clock)
        assert await services[0].access.sessions.find(secret) is not None
        await services[0].access.sessions.close(secret, actor=TESTER)
        assert await services[-1].access.sessions.find(secret) is None
        if len(services) == 1:
            await services[0].stop()

    play(url, scenario)


def test_a_foreign_session_is_in_memory_only(url: str) -> None:
    """Nothing of its credential is in the database; another process does not know it."""

    async def scenario(services: list[Service], clock: ManualClock) -> None:
        sessions = services[0].access.sessions
        credential = {"x-auth-token": "gAAAA-keystone"}
        secret = await sessions.open_foreign(credential, actor=TESTER, source="x")
        found = await sessions.find(secret)
        assert found is not None
        assert (found.token, found.credential) == (None, credential)
        if len(services) > 1:
            assert await services[1].access.sessions.find(secret) is None
        rows = await services[0].audit.page(None, 10)
        assert "gAAAA" not in str(rows)
        assert secret not in str(rows)
        clock.at += IDLE
        assert await sessions.find(secret) is None

    play(url, scenario)


def test_a_foreign_user_ends_only_its_own_sessions(url: str) -> None:
    """One more than a user may have ends its oldest; those of others stay."""

    async def scenario(services: list[Service], clock: ManualClock) -> None:
        sessions, greedy = services[0].access.sessions, Actor("greedy", None, "")
        kept = await sessions.open_foreign({}, actor=TESTER, source="x")
        secrets = [
            await sessions.open_foreign({}, actor=greedy, source="x")
            for _ in range(OF_TOKEN_MAX + 2)
        ]
        found = [await sessions.find(one) is not None for one in secrets]
        assert found == [False] * 2 + [True] * OF_TOKEN_MAX
        assert await sessions.find(kept) is not None

    play(url, scenario)


STEPS = st.lists(
    st.one_of(
        st.just(("open", 0)),
        st.tuples(st.just("use"), st.integers(0, 3)),
        st.tuples(st.just("look"), st.integers(0, 3)),
        st.tuples(st.just("close"), st.integers(0, 3)),
        st.tuples(st.just("wait"), st.sampled_from([1, 50 * SECOND, 25 * MINUTE, 59 * MINUTE])),
        st.just(("forget", 0)),
        st.just(("revoke", 0)),
    ),
    max_size=30,
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_sessions_behave_like_a_naive_model(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    """A session is there exactly if the model has it, up to the minute within which uses count."""

    async def scenario(services: list[Service], clock: ManualClock) -> None:
        access = services[0].access
        token: Token | None = await token_made(services[0])
        model: list[list[int]] = []  # opened, surely used, perhaps used; closed if empty
        secrets: list[str] = []
        for word, value in steps:
            number = value % len(secrets) if secrets else None
            if word == "wait":
                clock.at += value
            elif word == "forget":
                await access.sessions.forget()
            elif word == "open" and token is not None:
                secrets.append(await access.sessions.open(token, source="x"))
                model.append([clock.at, clock.at, clock.at])
            elif word == "revoke" and token is not None:
                await access.revoke(token.id, by=TESTER)
                token, model = None, [[] for _ in model]
            elif number is not None and word == "close":
                await access.sessions.close(secrets[number], actor=TESTER)
                model[number] = []
            elif number is not None and word in {"use", "look"}:
                found = await access.sessions.find(secrets[number], used=word == "use")
                known, now = model[number], clock.at
                if known and now - known[0] < LIFE and now - known[1] < IDLE:
                    assert found is not None
                if not known or now - known[0] >= LIFE or now - known[2] >= IDLE:
                    assert found is None
                if found is None:
                    model[number] = []
                elif word == "use":
                    known[2] = now
                    if now - known[1] >= NOTED_EVERY:
                        known[1] = now

    play(f"sqlite:///{tmp_path_factory.mktemp('sessions')}/m.sqlite", scenario)


def test_attempts_are_limited_by_source() -> None:
    """Five failures within a minute; then the source waits until the first is a minute old."""
    clock = ManualClock()
    attempts = SignInAttempts(clock)
    for _ in range(FAILURES_MAX):
        assert attempts.wait("a") == 0
        attempts.note("a")
        clock.at += SECOND
    assert attempts.wait("a") == 60 - FAILURES_MAX
    assert attempts.wait("b") == 0
    clock.at += MINUTE - FAILURES_MAX * SECOND
    assert attempts.wait("a") == 0
    for number in range(SOURCES_MAX + 10):
        attempts.note(str(number))
    assert len(attempts._failures) == SOURCES_MAX
