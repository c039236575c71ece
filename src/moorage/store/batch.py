"""Saves a batch of both rooms: the ledger's rows, the revision, admission's rows, change rows."""

from collections.abc import Sequence
from itertools import chain

from moorage.core.admission.facts import Changes as AdmissionChanges
from moorage.core.admission.facts import Facts as AdmissionFacts
from moorage.core.clock import Instant
from moorage.core.ledger.facts import Changes
from moorage.store import changelog
from moorage.store.access.audit import AuditRow
from moorage.store.admission import changes as admission_changes
from moorage.store.admission import save as admission_save
from moorage.store.api import Plan, Query, Statement, Write
from moorage.store.ledger import changes as ledger_changes
from moorage.store.ledger import save as ledger_save
from moorage.store.ledger.save import Before


def batch_save(
    before: Before,
    changes: Changes,
    facts: AdmissionFacts | None,
    granted: AdmissionChanges,
    audit: Sequence[AuditRow],
    now: Instant,
) -> Plan[tuple[int, int] | None]:
    """Write the changes of a batch; return (epoch, revision), None if no follower is notified.

    Stamps the tokens of new leases in `granted` and in `facts`, because their revision is known
    only here. `facts` are admission's, with all of `granted` applied; None: no admission in it.
    """
    rows: list[Statement] = [Write("audit_insert", audit)] if audit else []
    if facts is None:
        only = yield from changes_save(before, changes, now)
        if rows:
            yield rows
        return only
    if not (changes or granted.told):
        yield [*rows, *admission_save.writes(facts, granted)]
        return None
    # As late as possible: from here to the commit all other commits wait.
    *_, raised = yield [*rows, *ledger_save.writes(before, changes), Query("clock_raise", (now,))]
    revision, epoch = map(int, raised[0][:2])
    granted.stamp(epoch, revision)
    facts.apply(granted)
    told = chain(ledger_changes.change_rows(changes), admission_changes.change_rows(granted))
    yield [*admission_save.writes(facts, granted), changelog.changes_insert(told, now)]
    return epoch, revision


def changes_save(before: Before, changes: Changes, now: Instant) -> Plan[tuple[int, int]]:
    """Write the merged changes of a batch; return its (epoch, revision).

    Without changes it writes nothing and returns the current ones. Providers and consumers are
    guarded by the generation that was loaded. Rows are written in the order of their keys. A
    renamed class must be alone in its batch: every stored inventory and allocation of the class is
    renamed, including those that are not in the facts.
    """
    if not changes:
        ((epoch, revision, _),) = (yield [Query("clock_load")])[0]
        return epoch, revision
    *_, raised, _ = yield [
        *ledger_save.writes(before, changes),
        # As late as possible: from here to the commit all other commits wait.
        Query("clock_raise", (now,)),
        changelog.changes_insert(ledger_changes.change_rows(changes), now),
    ]
    revision, epoch = raised[0][:2]
    return epoch, revision
