"""Loads which consumers of the ledger belong to granted leases."""

from moorage.core.clock import Instant
from moorage.core.ids import ConsumerId, LeaseId
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
