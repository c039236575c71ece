"""Sums of usage: many of them at once are not in the way of others."""

import asyncio
from pathlib import Path

import pytest

from moorage.core.errors import Code, Error
from moorage.service.ledger.queries import SUMS_OF_ONE_MAX, UsageFilter
from moorage.store.ledger.usages import START, UsageWindow
from tests.service.running import running


@pytest.mark.parametrize("project", [None, "p"])
def test_one_caller_does_not_fill_the_thread(tmp_path: Path, project: str | None) -> None:
    """Its further questions are refused; another caller does not wait for all of them."""

    async def scenario() -> None:
        async with running(tmp_path / "moorage.sqlite") as one:
            done: list[str] = []

            async def ask(who: str) -> UsageWindow | Code:
                wanted = UsageFilter(by="user", project_id=project)
                try:
                    return await one.service.reads.usages_page(wanted, START, 10, who=who)
                except Error as refused:
                    return refused.code
                finally:
                    done.append(who)

            callers = ["many"] * (SUMS_OF_ONE_MAX + 3) + ["other"]
            found = await asyncio.gather(*map(ask, callers))
            assert found.count(Code.OVERLOADED) == 3
            assert isinstance(found[-1], UsageWindow)
            # Three are refused at once, and callers take turns.
            assert done.index("other") <= 3 + 2

    asyncio.run(scenario())
