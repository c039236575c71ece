"""What pages read of the catalog is as of the revision that they name, also while it changes."""

import asyncio
from pathlib import Path

from moorage.faces.dashboard.pages.one_revision import TRIES, of_one_revision
from tests.service.running import Running, running


class Reader:
    """Reads how many providers there are; meanwhile one is added, the first few times."""

    def __init__(self, one: Running, changes: int) -> None:
        self._one = one
        self._changes = changes
        self.reads = 0

    async def read(self) -> int:
        """Return the number of providers before the change."""
        self.reads += 1
        found = len(self._one.service.index.catalog)
        if self.reads <= self._changes:
            await self._one.provider(found + 1, VCPU=4)
        return found


def test_it_is_read_again_when_the_catalog_has_changed(tmp_path: Path) -> None:
    """The answer is the whole of its revision; without a change it is read once."""

    async def main() -> None:
        async with running(tmp_path / "m.sqlite") as one:
            for changes in range(TRIES):
                reader = Reader(one, changes)
                found, revision = await of_one_revision(one.service, reader.read)
                assert found == len(one.service.index.catalog)
                assert revision == f"1.{one.service.index.revision}"
                assert reader.reads == changes + 1

    asyncio.run(main())


def test_while_the_catalog_keeps_changing_two_revisions_are_named(tmp_path: Path) -> None:
    """It is not read without end, and the page does not pretend."""

    async def main() -> None:
        async with running(tmp_path / "m.sqlite") as one:
            reader = Reader(one, TRIES)
            found, named = await of_one_revision(one.service, reader.read)
            assert reader.reads == TRIES
            assert found == len(one.service.index.catalog) - 1
            first, _, last = named.partition(" to ")
            assert last == f"1.{one.service.index.revision}"
            assert first != last

    asyncio.run(main())
