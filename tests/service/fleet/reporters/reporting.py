"""Reporters that tests let join, report and fall silent, and what they report."""

from collections.abc import Iterable
from uuid import UUID

from moorage.core.clock import SECOND, Instant
from moorage.core.ids import ProviderId
from moorage.core.ledger.inventory import InventorySpec
from moorage.core.ledger.reported import Mode, Node, NodeAnswer, ReportOutcome
from moorage.service.app import Service
from moorage.service.batch.use_case import RunPlan
from moorage.service.fair_turns import Pieces
from moorage.service.fleet.report_bounds import ReportedNodes
from moorage.service.fleet.reporter_cases import Join, Membership, Sender
from moorage.store.api import Plan, Write
from tests.service.running import TESTER, provider_id

GROUP = "ironic"
TTL = 30 * SECOND
SSD = frozenset({"STORAGE_DISK_SSD"})


def instance(n: int) -> str:
    """Return the n-th instance of a reporter."""
    return str(UUID(int=n))


def nodes(count: int, total: int = 4, first: int = 0) -> list[Node]:
    """Describe nodes with this many VCPU each."""
    return [node(n, total) for n in range(first, first + count)]


def node(n: int, total: int = 4) -> Node:
    """Describe the n-th node."""
    inventories = {"VCPU": InventorySpec(total)}
    return Node(
        provider_id(n),
        f"node-{n}",
        inventories=inventories,
        traits=SSD,
        aggregates=frozenset(),
    )


async def join(service: Service, member: str, n: int = 1, ttl: int = TTL) -> Membership:
    """Let a member join as its n-th instance."""
    return await service.transactor.submit(Join(GROUP, member, instance(n), ttl))


async def report(
    service: Service, member: str, token: str, sent: list[Node], mode: Mode = Mode.OWNER
) -> list[NodeAnswer]:
    """Send a report."""
    sender = Sender(GROUP, member, token, mode)
    return await service.reporters.report(
        sender, ReportedNodes(sent), Pieces(service.turns), TESTER
    )


def outcomes(answers: Iterable[NodeAnswer]) -> list[str]:
    """Return the outcomes, or the codes of refusals."""
    return [str(each.refusal.code if each.refusal else each.outcome) for each in answers]


def accepted(answers: Iterable[NodeAnswer]) -> set[ProviderId]:
    """Return the nodes that a report has changed."""
    changing = (ReportOutcome.CREATED, ReportOutcome.UPDATED, ReportOutcome.REMOVED)
    return {each.uuid for each in answers if each.outcome in changing}


async def silence(service: Service, member: str) -> None:
    """Let a member be silent until it is no longer live."""

    def plan() -> Plan[None]:
        yield [Write("reporter_heard", [(Instant(1), GROUP, member)])]

    await service.transactor.submit(RunPlan(plan))
