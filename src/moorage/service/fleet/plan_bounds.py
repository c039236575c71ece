"""What bounds the plans of machines before their batches: no machine is in the way of others."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from moorage.core.clock import HOUR, Clock, Instant
from moorage.core.errors import Code, Error
from moorage.core.ids import AgentId, ProviderId
from moorage.core.ledger.reshaping.own_tree import foreign, touched_providers
from moorage.core.ledger.reshaping.plan import ReshapePlan
from moorage.core.ledger.reshaping.planning import refused
from moorage.core.ledger.search import Catalog
from moorage.core.limits import MACHINE_RESHAPES_MAX
from moorage.service.access.sign_in_attempts import SignInAttempts
from moorage.service.caller_turns import CallerTurns
from moorage.service.ledger.reshapes import check

PLANS_WAITING_MAX = 64
"""Reports whose plan waits until those before it are carried out; machines try again later."""

PLANS_OF_ONE_MAX = 2
"""Those of one machine: it sends a report again whose answer is lost."""


class PlanTurns:
    """Lets one plan happen at a time, because it is alone in its batch: claims go between two.

    `clock` measures the hour in which a machine changes its shape a few times at most.
    """

    def __init__(self, clock: Clock) -> None:
        self._turns = CallerTurns("plans", PLANS_OF_ONE_MAX, PLANS_WAITING_MAX)
        self._reshapes = SignInAttempts(clock, MACHINE_RESHAPES_MAX, HOUR)

    @asynccontextmanager
    async def of(self, agent: AgentId) -> AsyncIterator[None]:
        """Wait for the turn of a machine; it lasts as long as the context.

        Raises `Error`: OVERLOADED, too many wait, of all or of this machine; LIMIT_EXCEEDED, it has
        changed its shape too often.
        """
        if self._reshapes.wait(agent) > 0:
            raise Error(
                Code.LIMIT_EXCEEDED,
                f"The plans of this machine have changed its shape {MACHINE_RESHAPES_MAX} times"
                " within an hour: no more of them are carried out for now.",
            )
        async with self._turns.of(agent):
            yield

    def note(self, agent: AgentId) -> None:
        """Note that a plan of a machine has changed its shape."""
        self._reshapes.note(agent)


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
