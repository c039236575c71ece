"""Explanations: why nothing is found."""

from moorage.core.ledger.search.explain import Explanation, Step, explaining
from moorage.core.ledger.search.validation import check_known
from moorage.faces.v1.decoding import body_decode
from moorage.faces.v1.questions import query_of
from moorage.faces.v1.routing import Request, Route
from moorage.service.access import Role
from moorage.service.app import Service
from moorage.wire.ledger import (
    ExplainAsked,
    Explained,
    ExplainedPart,
    ExplainedStep,
    Question,
)


async def explain_query(request: Request[None, ExplainAsked]) -> Explained:
    """Explain the question in the address."""
    return await _explained(
        request.service, body_decode(request.parameters.query.encode(), Question)
    )


async def explain(request: Request[Question, None]) -> Explained:
    """Explain the question in the body."""
    return await _explained(request.service, request.body)


ROUTES = (
    Route(
        method="GET",
        path="/v1/explain",
        role=Role.READER,
        projects=True,
        summary="Tell why nothing is found for a question, and what comes nearest.",
        handler=explain_query,
        parameters=ExplainAsked,
        answer=Explained,
    ),
    Route(
        method="POST",
        path="/v1/explain",
        role=Role.READER,
        projects=True,
        summary="As `GET`, for questions that are too long for an address.",
        handler=explain,
        body=Question,
        answer=Explained,
    ),
)


async def _explained(service: Service, asked: Question) -> Explained:
    query = query_of(asked)
    fleet = await service.index.current()
    check_known(fleet, query)
    return shown(await service.searches.reading(explaining(fleet, query)))


def shown(told: Explanation) -> Explained:
    """Return an explanation as it is shown."""
    return Explained(
        found=told.found,
        exhausted=told.exhausted,
        parts=[
            ExplainedPart(
                suffix=part.suffix,
                resource_class=part.resource_class,
                steps=_steps(part.steps),
                nearest=part.nearest,
            )
            for part in told.parts
        ],
        trees=_steps(told.trees),
        without=told.without,
        nearest=told.nearest,
    )


def _steps(steps: list[Step]) -> list[ExplainedStep]:
    return [ExplainedStep(condition=step.condition, left=step.left) for step in steps]
