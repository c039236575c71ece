"""A disk that fails once while the service commits: exactly the acknowledged claims exist."""

import asyncio
from pathlib import Path

import pytest

from moorage.core.errors import Code
from moorage.store.api import StoreError
from tests.service.running import Running, claim, consumer_id, running
from tests.store.sqlite.faulty_disk import Faulty

ROUNDS = 4
CLAIMS = 3


async def run_service(path: Path, vfs: str) -> tuple[set[int], bool]:
    """Run a service on a file system; return the acknowledged claims, and whether it has failed."""
    acknowledged: set[int] = set()
    fatal: list[Exception] = []
    try:
        async with running(path, vfs=vfs) as one:
            fatal = one.fatal
            await claims(one, acknowledged)
    except StoreError:
        pass  # it could not start or close properly
    return acknowledged, bool(fatal)


async def claims(one: Running, acknowledged: set[int]) -> None:
    """Claim several at a time, as long as the service runs."""
    uuid = one.service.index.catalog.named("name-1")
    assert uuid is not None
    for turn in range(ROUNDS):
        numbers = range(turn * CLAIMS, (turn + 1) * CLAIMS)
        outcomes = await one.outcomes(*(claim(n, uuid, VCPU=1) for n in numbers))
        assert set(outcomes) <= {None, Code.UNAVAILABLE}
        assert len(set(outcomes)) == 1, "a batch was acknowledged in part"
        acknowledged.update(n for n, said in zip(numbers, outcomes, strict=True) if said is None)
        assert one.used(uuid) == len(acknowledged)


async def prepare(path: Path) -> None:
    """Create the provider."""
    async with running(path) as one:
        await one.provider(1, VCPU=100)


async def found(path: Path) -> set[int]:
    """Open without faults; return the existing claims. The final check must find nothing."""
    async with running(path) as one:
        return {
            n for n in range(ROUNDS * CLAIMS) if await one.service.reads.consumer(consumer_id(n))
        }


@pytest.mark.parametrize(
    ("operation", "way"), [("write", "error"), ("write", "full"), ("sync", "error")]
)
def test_one_failure(tmp_path: Path, operation: str, way: str) -> None:
    """After a failed write the service continues; after a failed sync it asks to be ended."""
    counting = Faulty(f"service counting {operation} {way}")
    asyncio.run(prepare(tmp_path / "counted"))
    acknowledged, dead = asyncio.run(run_service(tmp_path / "counted", counting.name))
    assert (len(acknowledged), dead) == (ROUNDS * CLAIMS, False)
    deaths = 0
    for at in range(counting.count[operation]):
        path = tmp_path / str(at)
        asyncio.run(prepare(path))
        system = Faulty(f"service {operation} {way} {at}", operation, way, at)
        acknowledged, dead = asyncio.run(run_service(path, system.name))
        assert system.happened
        there = asyncio.run(found(path))
        assert acknowledged <= there
        if not dead:
            assert acknowledged == there
        deaths += dead
    assert (deaths >= ROUNDS) is (operation == "sync")
