"""Finds out whether a commit whose answer was lost succeeded, and checks the server's history.

Every transaction writes a receipt, a row with a unique id. To ask for it, a process inserts the
same row if it is missing, so the first of the two rows decides: if the asker was first, a
transaction whose COMMIT is still on its way conflicts with that row and fails. The commit of the
asker also ensures that what it found is as durable as any other commit.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from uuid import uuid4

from moorage.core.clock import SECOND, Instant
from moorage.store.api import Conflict, StoreError, Unavailable
from moorage.store.formats import FORMAT
from moorage.store.formats import check as check_format
from moorage.store.high_water_mark import Mark
from moorage.store.postgres.connection import NOT_WHOLE, Link, Prepared
from moorage.store.postgres.known import KnownHistory

CHANNEL = "moorage_revision"
"""The channel on which every new revision is notified."""

ASK_SECONDS_MAX = 30.0
"""How long to ask whether a transaction was committed before its callers get an error."""

ASK_PAUSE_SECONDS = 0.2

RECEIPT_SECONDS = 45 * 60
"""How long a missing receipt proves that there was none. Receipts are deleted after an hour, and a
machine that was suspended during a COMMIT may ask later than that."""

_RECEIPT = """
INSERT INTO batch (id, revision, kept)
SELECT $1::uuid, revision, true FROM clock_now RETURNING revision
"""
# The notification carries the revision for debugging only.
_RECEIPT_NOTIFIED = f"""
WITH receipt AS ({_RECEIPT})
SELECT pg_notify('{CHANNEL}', revision::text) FROM receipt
"""
# Waits for an open transaction that has inserted this id.
_ASK = """
INSERT INTO batch (id, revision, kept) SELECT $1::uuid, revision, false FROM clock_now
ON CONFLICT (id) DO UPDATE SET asked = batch.asked + 1
RETURNING kept, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
"""
# Every promotion and every recovery to a point in time begins a new timeline. A copy of the cluster
# or of the database has another identity, and so does a restored table. A server that was restarted
# may have other rows, even if it is the same one. The previous release did not include the table
# (the last part): the value that it stored is a prefix of this one.
_SERVER = """
left(pg_walfile_name(pg_current_wal_lsn()), 8)
    || '-' || (SELECT system_identifier FROM pg_control_system())
    || '-' || (SELECT oid FROM pg_database WHERE datname = current_database())
    || '-' || 'clock'::regclass::oid"""
SERVED = f"SELECT {_SERVER} || '-' || extract(epoch FROM pg_postmaster_start_time())"
"""Identifies a server, its start and its history, to compare connections."""

_HISTORY = f"""
SELECT epoch, revision, (SELECT at FROM change WHERE revision = $1 AND n = 0), lineage, {_SERVER},
    minimum_version, newest_version, pid::text, backend_start::text
FROM clock_now, pg_stat_activity WHERE pid = pg_backend_pid()
"""
# Always a commit: when it returns, all rows visible here are as durable as any other commit.
# If several processes find the same change of history, only one of them raises the epoch.
_HISTORY_SET = f"""
UPDATE clock SET lineage = $1, newest_version = GREATEST(newest_version, {FORMAT}),
    epoch = CASE WHEN $2::boolean AND epoch = $3 THEN GREATEST(epoch, $4::bigint,
        floor(extract(epoch FROM clock_timestamp()))::bigint - 1) + 1 ELSE epoch END
WHERE id >= (SELECT MAX(id) FROM clock)
RETURNING epoch, revision
"""

# Identified by pid and start time, because pids are reused. A session that was sent a COMMIT is
# terminated only while it waits for the client, so it has not received it: a terminated COMMIT that
# waits for a standby would become visible as committed, but without the standby.
_END = """
SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity
WHERE pid = $1 AND backend_start::text = $2 AND (NOT $3::boolean OR wait_event = 'ClientRead')
"""

log = logging.getLogger("moorage.postgres")


class Receipt:
    """The row that proves that one transaction was committed."""

    def __init__(self, since: Instant | None = None) -> None:
        """`since`: a time during the transaction, by the server's clock; None: no age check."""
        self.id = str(uuid4())
        self._since = since

    def statements(self, *, revised: bool = True) -> list[Prepared]:
        """Return the statements that the transaction runs just before its COMMIT.

        `revised`: whether it has taken a revision, of which the other processes are notified.
        """
        return [(_RECEIPT_NOTIFIED if revised else _RECEIPT, (self.id,))]

    async def ask(self, connect: Callable[[], Awaitable[Link]]) -> None:
        """Return if the transaction was committed.

        Raises:
            Conflict: it was not, and never will be.
            Unavailable: no server could answer for `ASK_SECONDS_MAX`, or the receipt is too old.
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
        if not kept and self._since is not None and now - self._since > RECEIPT_SECONDS * SECOND:
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


async def history_checked(link: Link, known: KnownHistory) -> None:
    """Begin a new epoch if the database does not continue the known history.

    That is the case if another server or timeline has replaced the one that wrote last, or if the
    revision of the mark is missing. Also records the link's session for `orphan_ended`, and its
    server for readers. Raises Outdated, Unavailable.
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
    """Find out which server a link is connected to."""
    ((((link.server,),), _),) = await link.run("history", [(SERVED, ())])


async def orphan_ended(link: Link, lost: Link) -> None:
    """Terminate the server session of a broken link: it may hold locks and wait for its client."""
    if lost.served_by:
        committing = "true" if lost.committing else "false"
        await link.run("end", [(_END, (*lost.served_by, committing))])
