"""A flow run: `python -m tests.orchestrators.runs.with_prefect POOL NAME HOW`."""

import asyncio
import sys
from contextlib import nullcontext

from prefect import flow, task
from prefect_lease import async_lease, lease

from tests.orchestrators.runs.gate import work


@task(retries=1)
def install(pool: str, name: str, how: str) -> None:
    """Work with a unit, or, as a control, without."""
    with lease(pool) if how == "leased" else nullcontext():
        work(name)


@flow
def leased(pool: str, name: str, how: str) -> None:
    """Work in a task."""
    install(pool, name, how)


@flow
async def busy(pool: str, name: str) -> None:
    """Block the event loop while the lease is held."""
    async with async_lease(pool):
        work(name)


if __name__ == "__main__":
    _, pool, name, how = sys.argv
    if how == "busy":
        asyncio.run(busy(pool, name))
    else:
        leased(pool, name, how)
