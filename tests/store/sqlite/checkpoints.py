"""Waits for the checkpoints of the SQLite engine, which run in a thread of their own."""

import asyncio

from moorage.store.sqlite.engine import SqliteEngine


async def settled(engine: SqliteEngine) -> None:
    """Wait for a checkpoint that is in progress."""
    if engine._checkpoint is not None:
        await asyncio.wait([asyncio.wrap_future(engine._checkpoint)])
