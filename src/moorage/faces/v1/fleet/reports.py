"""Reports of groups of reporters: what a source of nodes has, and what it has no more."""

from collections import Counter

from moorage.core.ids import AggregateId, ProviderId
from moorage.core.ledger.reported import Mode, Node, NodeAnswer, ReportOutcome
from moorage.faces.v1 import roles
from moorage.faces.v1.decoding import body_decode
from moorage.faces.v1.ledger.providers import inventory_of
from moorage.faces.v1.long_lists import members_of, misfit, parts_of
from moorage.faces.v1.routing import Handlers, Request
from moorage.service.fair_turns import Pieces
from moorage.service.fleet.report_bounds import ReportedNodes
from moorage.service.fleet.reporter_cases import Sender
from moorage.service.values import uuid_of
from moorage.wire.operations import reporting as operations
from moorage.wire.reporting import NodeOutcome, NodeOutcomes, NodeReported, ReportWanted


async def send(request: Request[bytes, None]) -> NodeOutcomes:
    """Make the ledger say what a report says of the nodes of its sender."""
    pieces = Pieces(request.service.turns)
    parts = await parts_of(request.body, pieces, "nodes", _envelope)
    wanted = _envelope(parts.around)
    roles.check_scope(request.scope, [wanted.group])
    nodes = ReportedNodes()
    async for node in members_of(request.body, parts, pieces, NodeReported, _node):
        nodes.add(node)  # before the next ones are in memory
    sender = Sender(wanted.group, wanted.member, wanted.token, Mode(wanted.mode))
    answers = await request.service.reporters.report(sender, nodes, pieces, request.actor)
    return await _shown(answers, pieces)


HANDLERS: Handlers = {
    operations.SEND_REPORTS: send,
}


def _envelope(around: bytes) -> ReportWanted:
    """Decode a body without its nodes. Raises RefusalError."""
    wanted = body_decode(around, ReportWanted)
    if wanted.nodes:
        raise misfit("`nodes` is given more than once")
    return wanted


def _node(sent: NodeReported) -> Node:
    uuid = ProviderId(uuid_of(sent.uuid, "uuid"))
    if sent.seen == "absent":
        return Node(uuid, absent=True)
    aggregates = None
    if sent.aggregates is not None:
        aggregates = frozenset(AggregateId(uuid_of(e, "An aggregate")) for e in sent.aggregates)
    inventories = None
    if sent.inventories is not None:
        inventories = {name: inventory_of(each) for name, each in sent.inventories.items()}
    return Node(
        uuid,
        sent.name,
        inventories=inventories,
        traits=None if sent.traits is None else frozenset(sent.traits),
        aggregates=aggregates,
    )


async def _shown(answers: list[NodeAnswer], pieces: Pieces) -> NodeOutcomes:
    results = [_outcome(each) async for each in pieces.each(answers)]
    counts = Counter(each.outcome for each in answers)
    codes = Counter(each.code for each in results if each.code is not None)
    return NodeOutcomes(
        results=results,
        ghosts=sum(each.ghost for each in answers),
        codes=dict(sorted(codes.items())),
        **{kind.value: counts[kind] for kind in ReportOutcome},
    )


def _outcome(answer: NodeAnswer) -> NodeOutcome:
    refusal = answer.refusal
    return NodeOutcome(
        uuid=answer.uuid,
        outcome=answer.outcome.value,
        generation=answer.generation,
        ghost=answer.ghost,
        code=None if refusal is None else refusal.code.value,
        message=None if refusal is None else refusal.message,
    )
