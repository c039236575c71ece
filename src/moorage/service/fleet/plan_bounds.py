"""What is refused of a machine's plan before its batch: it must not lock what belongs to others."""

from moorage.core.clock import Instant
from moorage.core.ids import ProviderId
from moorage.core.ledger.reshaping.own_tree import foreign, touched_providers
from moorage.core.ledger.reshaping.plan import ReshapePlan
from moorage.core.ledger.reshaping.planning import refused
from moorage.core.ledger.search import Catalog
from moorage.service.ledger.reshapes import check


def check_own(catalog: Catalog, root: ProviderId, plan: ReshapePlan) -> None:
    """Raise ReshapeRefusal if a plan names providers that are not below a root.

    The batch looks again: the catalog may be older.
    """
    own = [root]
    for uuid in own:
        own += catalog.children_of(uuid)
    beyond = touched_providers(plan).difference(own)
    if beyond:
        check(refused(Instant(0), foreign(beyond)), None)
