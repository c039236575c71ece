"""Loads what leases have in the ledger, and what tickets want there."""

from moorage.core.clock import Instant
from moorage.core.ids import ConsumerId, LeaseId, ProviderId
from moorage.store.api import Plan, Query
from moorage.store.encoding import key_set


def tenants_load(consumers: set[ConsumerId]) -> Plan[dict[tuple[ConsumerId, Instant], LeaseId]]:
    """Load the granted leases of some consumers, by consumer and when it was created for them.

    It reads all live leases, because reshapes that take units from consumers are rare.
    """
    if not consumers:
        return {}
    (rows,) = yield [Query("leases_load_by_consumer", (key_set(consumers),))]
    return {(consumer, since): lease for consumer, since, lease in rows}


def tickets_load(providers: set[ProviderId], rows_max: int) -> Plan[list[tuple[LeaseId, str]]]:
    """Load waiting tickets that ask for units of some providers, the oldest first.

    Each has the text of what it asks for. It reads all live tickets: use `read_aside`.
    """
    if not providers:
        return []
    (rows,) = yield [Query("tickets_load_by_provider", (key_set(providers), rows_max))]
    return [(lease, text) for lease, text in rows]
