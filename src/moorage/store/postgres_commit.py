"""What must be known of a commit whose answer never came, and of the server that gave it.

Every transaction leaves a receipt, a row with an id of its own. Who asks for it writes the same row
when it is missing. So the first of the two decides: if the asker's row was first, the transaction,
should its COMMIT still be on its way, meets that row and fails. And the asker's own commit tells
that what it found is as durable as any other commit.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from uuid import uuid4

from moorage.store.api import Conflict, StoreError, Unavailable
from moorage.store.postgres_link import Link, Prepared

CHANNEL = "moorage_revision"
"""Where every commit is announced, to whoever listens."""

ASK_SECONDS_MAX = 30.0
"""How long to ask whether a transaction was committed before its callers are told of the doubt."""

ASK_PAUSE_SECONDS = 0.2

# The notification carries the revision, for people who look; nothing rests on it.
_RECEIPT = f"""
WITH receipt AS (
    INSERT INTO batch (id, revision, kept)
    SELECT $1::uuid, revision, true FROM clock RETURNING revision
)
SELECT pg_notify('{CHANNEL}', revision::text) FROM receipt
"""
# Waits for a transaction that holds this id and has not ended.
_ASK = """
INSERT INTO batch (id, revision, kept) SELECT $1::uuid, revision, false FROM clock
ON CONFLICT (id) DO UPDATE SET asked = batch.asked + 1 RETURNING kept
"""
# A timeline begins with every promotion and every recovery to a point in time; a copy of the
# cluster or of the database has another identity.
_LINEAGE = """
SELECT lineage, left(pg_walfile_name(pg_current_wal_lsn()), 8)
    || '-' || (SELECT system_identifier FROM pg_control_system())
    || '-' || (SELECT oid FROM pg_database WHERE datname = current_database()),
    pid::text, backend_start::text
FROM clock, pg_stat_activity WHERE pid = pg_backend_pid()
"""
_LINEAGE_SET = """
UPDATE clock SET lineage = $1, epoch = epoch + (lineage IS NOT NULL)::int
WHERE lineage IS DISTINCT FROM $1
"""

# Named by more than its number, which may be another's by now.
_END = """
SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity
WHERE pid = $1 AND backend_start::text = $2
"""

log = logging.getLogger("moorage.postgres")


class Receipt:
    """The sign that one transaction was committed."""

    def __init__(self) -> None:
        self.id = str(uuid4())

    def statements(self) -> list[Prepared]:
        """Return what the transaction runs just before its COMMIT."""
        return [(_RECEIPT, (self.id,))]

    async def ask(self, connect: Callable[[], Awaitable[Link]]) -> None:
        """Return if the transaction was committed.

        Raises:
            Conflict: it was not, and never will be.
            Unavailable: nobody could tell for `ASK_SECONDS_MAX`.
        """
        log.warning("the connection was lost during a commit; asking for transaction %s", self.id)
        loop = asyncio.get_running_loop()
        end = loop.time() + ASK_SECONDS_MAX
        while True:
            try:
                kept = await self._ask_once(connect)
            except StoreError as error:
                if loop.time() > end:
                    raise Unavailable(
                        "it went away during a commit, and whether the change was kept is not "
                        f"known; look before you repeat it ({error})"
                    ) from error
                await asyncio.sleep(ASK_PAUSE_SECONDS)
            else:
                break
        log.warning("transaction %s was %s", self.id, "committed" if kept else "not committed")
        if not kept:
            raise Conflict("the connection was lost before the commit")

    async def _ask_once(self, connect: Callable[[], Awaitable[Link]]) -> bool:
        link = await connect()
        try:
            (((kept,),), _), *_ = await link.run("ask", [(_ASK, (self.id,))])
            return bool(kept)
        finally:
            await link.close()


async def lineage_checked(link: Link) -> None:
    """Raise the epoch if another server, or another history, goes on where the last one wrote.

    Also remembers who serves the link, for `orphan_ended`.
    """
    ((((known, found, *link.served_by),), _),) = await link.run("lineage", [(_LINEAGE, ())])
    if known != found:
        await link.run("lineage", [(_LINEAGE_SET, (found,))])
        if known is not None:
            log.warning("the server's history changed from %s to %s: new epoch", known, found)


async def orphan_ended(link: Link, lost: Link) -> None:
    """Let the server end whoever served a link that broke: it may hold locks, and wait for us."""
    if lost.served_by:
        await link.run("end", [(_END, tuple(lost.served_by))])
