"""Usages of a provider, and of a project or a user."""

from collections import Counter
from typing import Any

from moorage.faces.placement.handlers.allocations import NO_TYPE, TYPE_SINCE
from moorage.faces.placement.order import class_key, classes_in_order
from moorage.faces.placement.request import Request, Response, json_answer
from moorage.faces.query_strings.queries import usage_query

EVERY_TYPE = "all"
"""The `consumer_type` that asks for one sum over all types."""


async def provider_index(request: Request) -> Response:
    """GET /resource_providers/{uuid}/usages."""
    record = await request.provider("{0}: {0}")
    names = classes_in_order(await request.catalog(), record.inventories)
    shown = {
        "resource_provider_generation": record.provider.generation,
        "usages": {name: record.inventories[name].used for name in names},
    }
    return json_answer(shown, request.now())


async def index(request: Request) -> Response:
    """GET /usages: the sums of a project, or of one user in it."""
    query = usage_query(request.query_string, request.version, request.limits)
    usages = await request.service.reads.usages(query.project_id, query.user_id)
    catalog = await request.catalog()
    usages.amounts.sort(key=lambda amount: (class_key(catalog, amount[1]), amount[0] or ""))
    if request.version < TYPE_SINCE:
        return json_answer({"usages": _sums(usages.amounts, None)}, request.now())
    if query.consumer_type == EVERY_TYPE:
        groups = {EVERY_TYPE: sum(usages.consumers.values())} if usages.amounts else {}
    else:
        kinds = dict.fromkeys(kind for kind, _, _ in usages.amounts)
        groups = {kind or NO_TYPE: usages.consumers[kind] for kind in kinds}
        if query.consumer_type is not None:
            groups = {kind: groups[kind] for kind in groups if kind == query.consumer_type}
    shown: dict[str, Any] = {
        kind: _counted(_sums(usages.amounts, kind), number) for kind, number in groups.items()
    }
    return json_answer({"usages": shown}, request.now())


def _counted(sums: dict[str, int], consumers: int) -> dict[str, int]:
    """Insert the number of consumers as the second member of a group."""
    first, *others = sums
    return {first: sums[first], "consumer_count": consumers, **{n: sums[n] for n in others}}


def _sums(amounts: list[tuple[str | None, str, int]], wanted: str | None) -> dict[str, int]:
    """Sum by class; `wanted` None or `all`: over all types."""
    sums: Counter[str] = Counter()
    for kind, name, amount in amounts:
        if wanted in (None, EVERY_TYPE, kind or NO_TYPE):
            sums[name] += amount
    return dict(sums)
