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

from moorage.core.clock import Instant
from moorage.store.api import Conflict, StoreError, Unavailable
from moorage.store.formats import FORMAT
from moorage.store.formats import check as check_format
from moorage.store.high_water_mark import Mark
from moorage.store.postgres.connection import NOT_WHOLE, Link, Prepared
from moorage.store.postgres.known import Known

CHANNEL = "moorage_revision"
"""Where every commit is announced, to whoever listens."""

ASK_SECONDS_MAX = 30.0
"""How long to ask whether a transaction was committed before its callers are told of the doubt."""

ASK_PAUSE_SECONDS = 0.2

RECEIPT_SECONDS = 45 * 60
"""For how long a missing receipt tells that there was none. Receipts go after an hour, and a
machine that was suspended in a COMMIT may ask later than that."""

# The notification carries the revision, for people who look; nothing rests on it.
_RECEIPT = f"""
WITH receipt AS (
    INSERT INTO batch (id, revision, kept)
    SELECT $1::uuid, revision, true FROM clock_now RETURNING revision
)
SELECT pg_notify('{CHANNEL}', revision::text) FROM receipt
"""
# Waits for a transaction that holds this id and has not ended.
_ASK = """
INSERT INTO batch (id, revision, kept) SELECT $1::uuid, revision, false FROM clock_now
ON CONFLICT (id) DO UPDATE SET asked = batch.asked + 1
RETURNING kept, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
"""
# A timeline begins with every promotion and every recovery to a point in time; a copy of the
# cluster or of the database has another identity, and so has a table that was restored.
# A server that was started again may have other rows, be it the same one. The release before left
# the table out, which is the last part: what it wrote begins what this one finds.
_SERVER = """
left(pg_walfile_name(pg_current_wal_lsn()), 8)
    || '-' || (SELECT system_identifier FROM pg_control_system())
    || '-' || (SELECT oid FROM pg_database WHERE datname = current_database())
    || '-' || 'clock'::regclass::oid"""
SERVED = f"SELECT {_SERVER} || '-' || extract(epoch FROM pg_postmaster_start_time())"
"""Which server answers, since when, and which history it has: to compare connections."""

_HISTORY = f"""
SELECT epoch, revision, (SELECT at FROM change WHERE revision = $1 AND n = 0), lineage, {_SERVER},
    minimum_version, newest_version, pid::text, backend_start::text
FROM clock_now, pg_stat_activity WHERE pid = pg_backend_pid()
"""
# Always a commit: when it returns, whatever can be seen here is as durable as any other commit.
# Of several processes that find the same, one raises the epoch.
_HISTORY_SET = f"""
UPDATE clock SET lineage = $1, newest_version = GREATEST(newest_version, {FORMAT}),
    epoch = CASE WHEN $2::boolean AND epoch = $3 THEN GREATEST(epoch, $4::bigint,
        floor(extract(epoch FROM clock_timestamp()))::bigint - 1) + 1 ELSE epoch END
WHERE id >= (SELECT MAX(id) FROM clock)
RETURNING epoch, revision
"""

# Named by more than its number, which may be another's by now. Who has been sent a COMMIT is ended
# only while the server waits for us, so cannot have heard of it: a COMMIT that waits for a standby
# would end as committed, for everybody to see, and without the standby.
_END = """
SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity
WHERE pid = $1 AND backend_start::text = $2 AND (NOT $3::boolean OR wait_event = 'ClientRead')
"""

log = logging.getLogger("moorage.postgres")


class Receipt:
    """The sign that one transaction was committed."""

    def __init__(self, since: Instant | None = None) -> None:
        """`since`: when the transaction was under way, by the server's clock; None: just now."""
        self.id = str(uuid4())
        self._since = since

    def statements(self) -> list[Prepared]:
        """Return what the transaction runs just before its COMMIT."""
        return [(_RECEIPT, (self.id,))]

    async def ask(self, connect: Callable[[], Awaitable[Link]]) -> None:
        """Return if the transaction was committed.

        Raises:
            Conflict: it was not, and never will be.
            Unavailable: nobody could tell for `ASK_SECONDS_MAX`, or can tell any more.
        """
        log.warning("a commit was not confirmed; asking for transaction %s", self.id)
        loop = asyncio.get_running_loop()
        end = loop.time() + ASK_SECONDS_MAX
        while True:
            try:
                kept, now = await self._ask_once(connect)
            except StoreError as error:
                if loop.time() > end:
                    raise Unavailable(
                        "it went away during a commit, and whether the change was kept is not "
                        f"known; look before you repeat it ({error})"
                    ) from error
                await asyncio.sleep(ASK_PAUSE_SECONDS)
            else:
                break
        if not kept and self._since is not None and now - self._since > RECEIPT_SECONDS * 1_000_000:
            raise Unavailable(
                "the process stood still for so long during a commit that nobody can tell any more "
                "whether the change was kept; look before you repeat it"
            )
        log.warning("transaction %s was %s", self.id, "committed" if kept else "not committed")
        if not kept:
            raise Conflict("the connection was lost before the commit")

    async def _ask_once(self, connect: Callable[[], Awaitable[Link]]) -> tuple[bool, int]:
        link = await connect()
        try:
            ((rows, _),) = await link.run("ask", [(_ASK, (self.id,))])
            if not rows:
                raise Unavailable(f"ask: {NOT_WHOLE}")
            ((kept, now),) = rows
            if link.warned:
                raise Unavailable("a standby has not confirmed it")
            return bool(kept), int(now)
        finally:
            await link.close()


async def history_checked(link: Link, known: Known) -> None:
    """Begin a new epoch if the database has another history than the one that is known.

    That is: if another server goes on, or another history, where the last one wrote; or if what the
    mark stands for is not there any more. Also remembers who serves the link, for `orphan_ended`
    and for readers. Raises Outdated.
    """
    mark = known.mark
    found, served = await link.run("history", [(_HISTORY, (str(mark.revision),)), (SERVED, ())])
    if not found[0]:
        raise Unavailable(f"history: {NOT_WHOLE}")
    ((epoch, revision, at, former, lineage, minimum, newest, *link.served_by),), _ = found
    ((link.server,),), _ = served
    check_format(minimum, "the database")
    moved = former is not None and not f"{lineage}-".startswith(f"{former}-")
    missed = mark.is_missed_by(Mark(epoch, revision), at)
    asked = (lineage, "true" if moved or missed else "false", str(epoch), str(mark.epoch))
    ((reached, _),) = await link.run("history", [(_HISTORY_SET, asked)])
    if not reached:
        raise Unavailable(f"history: {NOT_WHOLE}")
    if link.warned:
        raise Unavailable("a standby has not confirmed what the server shows")
    if moved:
        log.warning("the server's history changed from %s to %s: new epoch", former, lineage)
    elif missed:
        log.warning(
            "the database is at revision %d.%d and has been at %d.%d: it was put back to an "
            "earlier state; a new epoch begins, and fencing tokens and cursors issued since then "
            "are refused",
            *(epoch, revision, mark.epoch, mark.revision),
        )
    known.reached(Mark(*reached[0]))
    known.newer |= newest > FORMAT
    known.server = link.server


async def server_known(link: Link) -> None:
    """Ask which server answers on a link."""
    ((((link.server,),), _),) = await link.run("history", [(SERVED, ())])


async def orphan_ended(link: Link, lost: Link) -> None:
    """Let the server end whoever served a link that broke: it may hold locks, and wait for us."""
    if lost.served_by:
        committing = "true" if lost.committing else "false"
        await link.run("end", [(_END, (*lost.served_by, committing))])
