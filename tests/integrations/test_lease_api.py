"""Connections to Moorage."""

import asyncio

import pytest

from moorage.integrations import native_api
from moorage.integrations.provisioning.hosts import Host
from tests.integrations.ironic.world import POOL, World, played


@played(1, 1)
async def test_requests_that_wait_keep_no_release_from_being_made(it: World) -> None:
    """However many wait, what frees a unit has a connection."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native_api, "WAITING_MAX", 2)
        patch.setattr(native_api, "CONNECTIONS_MAX", 2)
        async with it.host_leases() as (host_leases, _):
            lease, *tickets = (
                asyncio.create_task(
                    host_leases.ask(
                        Host("ironic", name), "active", {POOL: 1}, wait=20.0, patience=60.0
                    )
                )
                for name in "abc"
            )
            granted = await lease
            while len(it.leases("waiting")) < 2:
                await asyncio.sleep(0)
            async with asyncio.timeout(10.0):
                await host_leases.give_back(granted, requeue=False)
                await asyncio.wait(tickets, return_when=asyncio.FIRST_COMPLETED)
            for ticket in tickets:
                ticket.cancel()
            await asyncio.gather(*tickets, return_exceptions=True)
