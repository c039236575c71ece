"""Providers, consumers, usages, capacity, claims, explanations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.wire.operations.operation import Access, Content, Operation, Types

if TYPE_CHECKING:
    from moorage.wire import capacity, ledger, providers, usages
else:
    capacity, ledger, providers, usages = map(Types, ("capacity", "ledger", "providers", "usages"))

LIST_PROVIDERS = Operation(
    Access("GET /v1/providers", "reader"),
    Content(parameters=providers.ProvidersAsked, answer=providers.ProviderPage),
    "List providers by UUID, with inventories, usages, traits and aggregates.",
)
GET_PROVIDER = Operation(
    Access("GET /v1/providers/{id}", "reader"),
    Content(answer=providers.ProviderShown),
    "Show a provider, with inventories, usages, traits and aggregates.",
)
DRAIN_PROVIDER = Operation(
    Access("POST /v1/providers/{id}/drain", "operator"),
    Content(body=providers.DrainRequest, answer=providers.ProviderShown),
    "Place nothing new on a provider and all below it; what is allocated stays.",
)
RESUME_PROVIDER = Operation(
    Access("POST /v1/providers/{id}/resume", "operator"),
    Content(body=providers.DrainRequest, answer=providers.ProviderShown),
    "Use a drained provider again.",
)
DELETE_PROVIDER: Operation[None] = Operation(
    Access("DELETE /v1/providers/{id}", "operator"),
    Content(parameters=providers.DeleteAsked),
    "Delete a provider that has neither children nor allocations.",
)
UPSERT_PROVIDERS = Operation(
    Access("POST /v1/providers:bulk", "service"),
    Content(body=ledger.ProvidersWanted, answer=ledger.ProviderOutcomes, bulk=True),
    "Create or update many providers; providers that are as described stay unchanged.",
)
LIST_CONSUMERS = Operation(
    Access("GET /v1/consumers", "reader"),
    Content(parameters=providers.ConsumersAsked, answer=providers.ConsumerPage),
    "List consumers by UUID, with their allocations.",
)
GET_CONSUMER = Operation(
    Access("GET /v1/consumers/{id}", "reader"),
    Content(answer=providers.ConsumerShown),
    "Show a consumer, with its allocations.",
)
LIST_USAGES = Operation(
    Access("GET /v1/usages", "reader", projects=True),
    Content(parameters=usages.UsagesAsked, answer=usages.UsagePage),
    "Sum up what consumers hold, by project, user, consumer type or resource class.",
)
GET_CAPACITY = Operation(
    Access("GET /v1/capacity", "reader"),
    Content(parameters=capacity.CapacityAsked, answer=capacity.Capacity),
    "Sum up total, reserved, used and free by resource class, as of one revision.",
)
CREATE_CLAIM = Operation(
    Access("POST /v1/claims", "user", projects=True),
    Content(body=ledger.ClaimWanted, answer=ledger.Claim, status=201),
    "Choose providers for a new consumer and allocate from them in one step.",
)
EXPLAIN_BY_QUERY = Operation(
    Access("GET /v1/explain", "reader", projects=True),
    Content(parameters=ledger.ExplainAsked, answer=ledger.Explained),
    "Explain why a query finds nothing, and what comes closest.",
)
EXPLAIN = Operation(
    Access("POST /v1/explain", "reader", projects=True),
    Content(body=ledger.Question, answer=ledger.Explained),
    "Same as `GET`, for questions that are too long for an address.",
)
