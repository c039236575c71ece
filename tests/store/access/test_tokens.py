"""Access tokens are stored and found by their hash, and revoked once."""

import asyncio

import pytest

from moorage.core.clock import Instant
from moorage.store.access import tokens as access
from moorage.store.access.tokens import AccessToken
from moorage.store.api import Conflict, Engine, Plan

FIRST = AccessToken("t1", "a" * 64, "first", "u", "p", frozenset({"admin", "reader"}), Instant(1))
SECOND = AccessToken("t2", "b" * 64, "second", "u", "p", frozenset(), Instant(2))


async def write(engine: Engine, plan: Plan[object]) -> object:
    """Run one plan in its own transaction."""
    async with engine.transaction() as transaction:
        answer = await transaction.run(plan)
        await transaction.commit()
    return answer


def test_tokens(engine: Engine) -> None:
    """Tokens are returned as they were stored, oldest first; a hash finds at most one."""

    async def scenario() -> None:
        for token in (SECOND, FIRST):
            await write(engine, access.token_insert(token))
        assert await engine.read(access.tokens_window(Instant(0), "", 9)) == [FIRST, SECOND]
        assert await engine.read(access.token_by_sha256("a" * 64)) == FIRST
        assert await engine.read(access.token_by_sha256("c" * 64)) is None

    asyncio.run(scenario())


def test_revocation(engine: Engine) -> None:
    """A token is revoked once; it stays in the list with the time of its revocation."""

    async def scenario() -> None:
        await write(engine, access.token_insert(FIRST))
        assert await write(engine, access.token_revoke("t1", Instant(9))) is not None
        assert await write(engine, access.token_revoke("t1", Instant(10))) is None
        assert await write(engine, access.token_revoke("nobody", Instant(9))) is None
        (token,) = await engine.read(access.tokens_window(Instant(0), "", 9))
        assert token.revoked_at == 9

    asyncio.run(scenario())


@pytest.mark.parametrize("again", [{"id": "t9"}, {"sha256": "c" * 64}])
def test_no_token_twice(engine: Engine, again: dict[str, str]) -> None:
    """An id and a hash can each be stored only once."""
    fields = {name: getattr(FIRST, name) for name in FIRST.__struct_fields__} | again

    async def scenario() -> None:
        await write(engine, access.token_insert(FIRST))
        with pytest.raises(Conflict):
            await write(engine, access.token_insert(AccessToken(**fields)))
        assert await engine.read(access.tokens_window(Instant(0), "", 9)) == [FIRST]

    asyncio.run(scenario())


def test_a_token_is_rotated_once(engine: Engine) -> None:
    """A rotated token expires; neither a revoked nor a rotated token is rotated again."""

    async def rotate(token: str) -> object:
        return await write(engine, access.token_rotate(token, Instant(9), Instant(20)))

    async def scenario() -> None:
        for token in (FIRST, SECOND):
            await write(engine, access.token_insert(token))
        assert await engine.read(access.ends_load()) == (1, 0)
        assert await rotate("t1") is not None
        assert [await rotate(token) for token in ("t1", "nobody")] == [None, None]
        found = await engine.read(access.token_by_id("t1"))
        assert found is not None
        assert (found.rotated_at, found.expires_at, found.revoked_at) == (9, 20, None)
        await write(engine, access.token_revoke("t1", Instant(10)))
        await write(engine, access.token_revoke("t2", Instant(10)))
        assert await rotate("t2") is None

    asyncio.run(scenario())


def test_ends_of_tokens_are_numbered(engine: Engine) -> None:
    """Each end of a token has a higher number than all before it, and is listed after those."""

    async def after(ends: int, rows_max: int = 9) -> tuple[int, list[str]]:
        _, newest = await engine.read(access.ends_load())
        return newest, await engine.read(access.ended_since(ends, rows_max))

    async def scenario() -> None:
        for token in (FIRST, SECOND):
            await write(engine, access.token_insert(token))
        assert await engine.read(access.ends_load()) == (1, 0)
        await write(engine, access.token_rotate("t2", Instant(9), Instant(20)))
        rotated, hashes = await after(0)
        assert (rotated > 0, hashes) == (True, [SECOND.sha256])
        await write(engine, access.token_revoke("t1", Instant(10)))
        revoked, hashes = await after(rotated)
        assert (revoked > rotated, hashes) == (True, [FIRST.sha256])
        assert await after(0) == (revoked, [SECOND.sha256, FIRST.sha256])
        assert await after(0, rows_max=1) == (revoked, [SECOND.sha256])
        await write(engine, access.token_revoke("t2", Instant(11)))  # also a rotated one ends
        assert (await after(revoked))[1] == [SECOND.sha256]

    asyncio.run(scenario())


def test_all_fields_of_a_token_are_stored(engine: Engine) -> None:
    """This includes scope, expiry and last use; last uses of several are written together."""
    full = AccessToken(
        "t3",
        "c" * 64,
        "thïrd",
        "u",
        "",
        frozenset({"janitor"}),
        Instant(3),
        scope={"pool": ["a", "b/*"]},
        expires_at=Instant(30),
    )

    async def scenario() -> None:
        for token in (FIRST, SECOND, full):
            await write(engine, access.token_insert(token))
        assert await engine.read(access.token_by_id("t3")) == full
        await write(engine, access.tokens_used({"t1": Instant(7), "t3": Instant(8)}))
        found = await engine.read(access.tokens_window(Instant(0), "", 9))
        assert [token.used_at for token in found] == [7, None, 8]
        assert await engine.read(access.token_by_id("nobody")) is None

    asyncio.run(scenario())


def test_tokens_in_windows(engine: Engine) -> None:
    """Tokens of the same instant are ordered by their ids."""
    tokens = [
        AccessToken(f"t{n}", str(n) * 64, "name", "u", "p", frozenset(), Instant(n // 2))
        for n in range(5)
    ]

    async def scenario() -> None:
        for token in reversed(tokens):
            await write(engine, access.token_insert(token))
        found: list[AccessToken] = []
        while more := await engine.read(
            access.tokens_window(found[-1].created_at, found[-1].id, 1)
            if found
            else access.tokens_window(Instant(-1), "", 1)
        ):
            found += more
        assert found == tokens

    asyncio.run(scenario())
