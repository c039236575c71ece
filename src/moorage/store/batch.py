"""Saving a batch of both rooms: the ledger's rows, the revision, admission's rows, change rows."""

from collections.abc import Sequence
from itertools import chain

from moorage.core.admission.facts import Changes as AdmissionChanges
from moorage.core.admission.facts import Facts as AdmissionFacts
from moorage.core.clock import Instant
from moorage.core.ledger.facts import Changes
from moorage.store import admission, log, save
from moorage.store.api import Plan, Query, Statement, Write
from moorage.store.audit import AuditRow
from moorage.store.save import Before


def batch_save(
    before: Before,
    changes: Changes,
    facts: AdmissionFacts | None,
    granted: AdmissionChanges,
    audit: Sequence[AuditRow],
    now: Instant,
) -> Plan[tuple[int, int] | None]:
    """Write what a batch has changed; return (epoch, revision), None if no follower is told of it.

    The tokens of new leases are stamped in `granted` and in `facts`: their revision is known only
    here. `facts` are admission's, with all of `granted` applied; None: nothing of it is there.
    """
    rows: list[Statement] = [Write("audit_insert", audit)] if audit else []
    if facts is None:
        only = yield from save.changes_save(before, changes, now)
        if rows:
            yield rows
        return only
    if not (changes or granted.told):
        yield [*rows, *admission.writes(facts, granted)]
        return None
    # As late as possible: from here to the commit everybody else who commits waits.
    *_, raised = yield [*rows, *save.writes(before, changes), Query("clock_raise", (now,))]
    revision, epoch = map(int, raised[0][:2])
    granted.stamp(epoch, revision)
    facts.apply(granted)
    told = chain(log.change_rows(changes), admission.change_rows(granted))
    yield [*admission.writes(facts, granted), save.changes_insert(told, now)]
    return epoch, revision
