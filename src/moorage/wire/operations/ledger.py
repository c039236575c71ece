"""Providers, consumers, capacity, claims, explanations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.wire.operations.operation import Operation, Types

if TYPE_CHECKING:
    from moorage.wire import capacity, ledger, providers
else:
    capacity, ledger, providers = map(Types, ("capacity", "ledger", "providers"))

LIST_PROVIDERS = Operation(
    "GET /v1/providers",
    role="reader",
    parameters=providers.ProvidersAsked,
    answer=providers.ProviderPage,
    summary="List providers by UUID, with inventories, usages, traits and aggregates.",
)

GET_PROVIDER = Operation(
    "GET /v1/providers/{id}",
    role="reader",
    answer=providers.ProviderShown,
    summary="Show a provider, with inventories, usages, traits and aggregates.",
)

DRAIN_PROVIDER = Operation(
    "POST /v1/providers/{id}/drain",
    role="operator",
    body=providers.DrainRequest,
    answer=providers.ProviderShown,
    summary="Place nothing new on a provider and all below it; what is allocated stays.",
)

RESUME_PROVIDER = Operation(
    "POST /v1/providers/{id}/resume",
    role="operator",
    body=providers.DrainRequest,
    answer=providers.ProviderShown,
    summary="Use a drained provider again.",
)

DELETE_PROVIDER: Operation[None] = Operation(
    "DELETE /v1/providers/{id}",
    role="operator",
    parameters=providers.DeleteAsked,
    summary="Delete a provider that has neither children nor allocations.",
)

UPSERT_PROVIDERS = Operation(
    "POST /v1/providers:bulk",
    role="service",
    body=ledger.ProvidersWanted,
    answer=ledger.ProviderOutcomes,
    bulk=True,
    summary="Create or update many providers; those that are as described are left alone.",
)

LIST_CONSUMERS = Operation(
    "GET /v1/consumers",
    role="reader",
    parameters=providers.ConsumersAsked,
    answer=providers.ConsumerPage,
    summary="List consumers by UUID, with what they hold.",
)

GET_CONSUMER = Operation(
    "GET /v1/consumers/{id}",
    role="reader",
    answer=providers.ConsumerShown,
    summary="Show a consumer, with what it holds.",
)

GET_CAPACITY = Operation(
    "GET /v1/capacity",
    role="reader",
    parameters=capacity.CapacityAsked,
    answer=capacity.Capacity,
    summary="Sum up total, reserved, used and free by resource class, as of one revision.",
)

CREATE_CLAIM = Operation(
    "POST /v1/claims",
    role="user",
    projects=True,
    body=ledger.ClaimWanted,
    answer=ledger.Claim,
    status=201,
    summary="Choose providers for a new consumer and allocate from them in one step.",
)

EXPLAIN_BY_QUERY = Operation(
    "GET /v1/explain",
    role="reader",
    projects=True,
    parameters=ledger.ExplainAsked,
    answer=ledger.Explained,
    summary="Explain why nothing is found for a question, and what comes closest.",
)

EXPLAIN = Operation(
    "POST /v1/explain",
    role="reader",
    projects=True,
    body=ledger.Question,
    answer=ledger.Explained,
    summary="Same as `GET`, for questions that are too long for an address.",
)
