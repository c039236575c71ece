"""The native API of leases for programs that hold many requests at once, with asyncio.

The same calls as `client.admission`, on connections that stay open.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Any

from moorage.integrations.native_api import NativeApi
from moorage.wire.admission import Lease, LeaseWanted, Pool
from moorage.wire.operations import leases, pools


class LeaseApi(NativeApi):
    """The leases of one server.

    Every call raises UnreachableError and RefusedError, and UndecodableError if the answer is not
    from a Moorage server.
    """

    async def ask(self, wanted: LeaseWanted, wait: float = 0.0) -> Lease:
        """Request units; wait up to 60 seconds for the grant. It is safe to repeat."""
        return await self._call(leases.CREATE_LEASE, body=wanted, wait=wait or None)

    async def lease(self, lease_id: str, wait: float = 0.0) -> Lease:
        """Return a lease or ticket; wait up to 60 seconds for a ticket to be granted or ended."""
        return await self._call(leases.GET_LEASE, lease_id, wait=wait or None)

    async def leases(self, **asked: str | None) -> AsyncIterator[Lease]:
        """Yield leases and tickets: `pool`, `state`, `owner`, `key_prefix` narrow them down."""
        async for page in self._pages(leases.LIST_LEASES, **asked):
            for lease in page.leases:
                yield lease

    async def record_put(self, lease_id: str, record: Mapping[str, Any], version: int) -> Lease:
        """Write the record of a lease; `version` is that of the record which it replaces."""
        body = {"version": version, "record": record}
        return await self._call(leases.PUT_LEASE_RECORD, lease_id, body=body)

    async def renew(self, lease_id: str) -> Lease:
        """Extend a lease to its full TTL from now."""
        return await self._call(leases.RENEW_LEASE, lease_id, body={})

    async def release(self, lease_id: str, record_version: int | None = None) -> Lease:
        """Release a lease, or withdraw a ticket; with a version only while its record has it."""
        return await self._call(leases.RELEASE_LEASE, lease_id, record_version=record_version)

    async def requeue(self, lease_id: str, key: str, record_version: int) -> Lease:
        """Give the units back and wait at the same place in line."""
        body = {"key": key, "requeue": True, "record_version": record_version}
        return await self._call(leases.RETRY_LEASE, lease_id, body=body)

    async def outcome(self, lease_id: str, result: str, detail: str = "") -> Lease:
        """Report what became of the work: ok, failed or throttled."""
        body = {"result": result, "detail": detail}
        return await self._call(leases.REPORT_LEASE_OUTCOME, lease_id, body=body)

    async def pool(self, name: str) -> Pool:
        """Return a pool."""
        return await self._call(pools.GET_POOL, name)
