"""Claims: the server chooses providers for a consumer and allocates from them."""

from random import getrandbits
from uuid import uuid4

from moorage.core.errors import Code, Error
from moorage.core.ids import ConsumerId
from moorage.core.ledger.claims import ClaimRequest
from moorage.core.ledger.requests import CandidateOrder
from moorage.core.ledger.vocabulary import check_consumer_type
from moorage.core.texts import check_reason
from moorage.faces.v1 import problems
from moorage.faces.v1.authorization import check_project, check_role
from moorage.faces.v1.ledger.explain import explaining_address, query_of
from moorage.faces.v1.problems import ProblemError
from moorage.faces.v1.routing import Handlers, Request
from moorage.service.access.roles import Role
from moorage.service.ledger import claims
from moorage.service.values import name_of, uuid_of
from moorage.wire.ledger import Claim, ClaimWanted
from moorage.wire.operations import ledger as operations

SEED_BITS = 32


async def create(request: Request[ClaimWanted, None]) -> Claim:
    """Choose providers and allocate from them."""
    wanted = request.body
    check_project(request.project, wanted.project_id)
    if wanted.reason:
        check_role(request.role, Role.OPERATOR, "reason")
    if wanted.consumer_type is not None:
        check_consumer_type(wanted.consumer_type)
    check_reason(wanted.reason)
    wish = ClaimRequest(
        consumer=ConsumerId(
            str(uuid4()) if wanted.consumer is None else uuid_of(wanted.consumer, "consumer")
        ),
        project_id=name_of("project_id", wanted.project_id),
        user_id=name_of("user_id", wanted.user_id),
        consumer_type=wanted.consumer_type,
        query=query_of(wanted),
        order=CandidateOrder(wanted.choose, getrandbits(SEED_BITS)),
    )
    try:
        case = claims.Claim(wish, request.actor, wanted.reason)
        claimed = await request.service.transactor.submit(case)
    except Error as error:
        if error.code is not Code.NO_CAPACITY:
            raise
        raise _unfit(error, wanted) from None
    return Claim(
        consumer=claimed.consumer,
        generation=claimed.generation,
        allocations={str(uuid): amounts for uuid, amounts in claimed.allocations.items()},
        mappings={suffix: list(uuids) for suffix, uuids in claimed.mappings.items()},
    )


def _unfit(error: Error, wanted: ClaimWanted) -> ProblemError:
    """Return the refusal of a claim that fits nowhere, with the address of its explanation."""
    problem = problems.problem_of(error)
    problem.explain = explaining_address(wanted)
    return problem


HANDLERS: Handlers = {
    operations.CREATE_CLAIM: create,
}
