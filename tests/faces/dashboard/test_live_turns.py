"""Open pages whose rendering takes long: what their readers see meanwhile, and who is next."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing
from pathlib import Path

import pytest

from moorage.faces.dashboard import live
from moorage.faces.dashboard.live import Live, View
from moorage.service.app import Service
from moorage.service.ledger.vocabulary_cases import ClassEnsure
from tests.service.running import running

SOON = 20.0


class Pages:
    """Open pages of a service, each of which is rendered only when the test permits it."""

    def __init__(self, service: Service) -> None:
        self._live = Live(service)
        self.begun: list[str] = []
        self.permits: dict[str, asyncio.Semaphore] = {}

    def open(self, who: str, name: str) -> AsyncGenerator[bytes, None]:
        """Open a page."""
        permit = self.permits[name] = asyncio.Semaphore(0)

        async def render() -> str:
            self.begun.append(name)
            await permit.acquire()
            return f"{name} {len(self.begun)}"

        async def signed_in() -> bool:
            return True

        return self._live.events(who, View(name, (), ()), render, signed_in)


def play(folder: Path, scenario: Callable[[Service, Pages], Awaitable[None]]) -> None:
    """Run a scenario."""

    async def run() -> None:
        async with running(folder / "ledger.sqlite") as one, asyncio.timeout(SOON):
            await scenario(one.service, Pages(one.service))

    asyncio.run(run())


async def named(events: AsyncGenerator[bytes, None], name: str) -> str:
    """Return the data of the next event with a name."""
    async for event in events:
        if event.startswith(f"event: {name}\n".encode()):
            return event.decode().split("data: ")[1].strip()
    raise AssertionError(f"no {name}")


async def whole(events: AsyncGenerator[bytes, None]) -> bytes:
    """Return all events of a stream."""
    return b"".join([event async for event in events])


def test_a_page_that_waits_says_how_old_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for another reader's page; its own stream does not fall silent."""
    monkeypatch.setattr(live, "BEAT_SECONDS", 0.02)

    async def scenario(service: Service, pages: Pages) -> None:
        async with (
            aclosing(pages.open("a", "slow")) as slow,
            aclosing(pages.open("b", "own")) as own,
        ):
            asking = asyncio.ensure_future(anext(slow))
            while pages.begun != ["slow"]:
                await asyncio.sleep(0)
            for _ in range(3):
                assert await named(own, "beat") == "0s"
            assert pages.begun == ["slow"]
            pages.permits["slow"].release()
            assert b"slow 1" in await asking or await named(slow, "main") == "slow 1"
            pages.permits["own"].release()
            assert await named(own, "main") == "own 2"

    play(tmp_path, scenario)


def test_readers_take_turns(tmp_path: Path) -> None:
    """A reader with many slow pages delays another by one of them."""

    async def scenario(service: Service, pages: Pages) -> None:
        async with AsyncExitStack() as stack:
            greedy = [pages.open("greedy", f"slow {number}") for number in range(5)]
            opened = [*greedy, pages.open("other", "own")]
            asked = [
                asyncio.ensure_future(anext(await stack.enter_async_context(aclosing(one))))
                for one in opened
            ]
            await service.transactor.submit(ClassEnsure("CUSTOM_A"))  # all of them wait by then
            assert pages.begun == ["slow 0"]
            for permit in pages.permits.values():
                permit.release()
            await asyncio.gather(*asked)
        assert sorted(pages.begun) == sorted(pages.permits)
        assert pages.begun.index("own") <= 1

    play(tmp_path, scenario)


def test_pages_that_nobody_sees_any_more_are_not_rendered(tmp_path: Path) -> None:
    """A reader who closes pages that wait does not delay others by them."""

    async def scenario(service: Service, pages: Pages) -> None:
        async with aclosing(pages.open("a", "first")) as first:
            asking = asyncio.ensure_future(anext(first))
            while pages.begun != ["first"]:
                await asyncio.sleep(0)
            closed = asyncio.ensure_future(anext(pages.open("a", "closed")))
            await service.transactor.submit(ClassEnsure("CUSTOM_A"))
            closed.cancel()
            await asyncio.wait([closed])
            pages.permits["first"].release()
            await asking
        async with aclosing(pages.open("a", "last")) as last:
            pages.permits["last"].release()
            assert b"last 2" in await anext(last)
        assert pages.begun == ["first", "last"]

    play(tmp_path, scenario)


def test_pages_that_wait_do_not_delay_the_end(tmp_path: Path) -> None:
    """When the service stops, they are no longer rendered, and their streams end at once."""

    async def scenario(service: Service, pages: Pages) -> None:
        opened = [pages.open(f"reader {number}", f"page {number}") for number in range(3)]
        asked = [asyncio.ensure_future(whole(one)) for one in opened]
        while not pages.begun:
            await asyncio.sleep(0)
        service.watch.close()
        pages.permits["page 0"].release()
        first, *others = await asyncio.gather(*asked)
        assert b"page 0 1" in first
        assert all(b"The service is stopping." in one for one in others)
        assert pages.begun == ["page 0"]

    play(tmp_path, scenario)
