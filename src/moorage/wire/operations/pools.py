"""Pools, their named slots, their history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.wire.operations.operation import Access, Content, Operation, Types

if TYPE_CHECKING:
    from moorage.wire import admission, pages, slots
    from moorage.wire.pools import boskos, past, reports, templates
else:
    admission, pages, slots, boskos, past, reports, templates = map(
        Types,
        (
            "admission",
            "pages",
            "slots",
            *(f"pools.{name}" for name in ("boskos", "past", "reports", "templates")),
        ),
    )

LIST_POOL_TEMPLATES = Operation(
    Access("GET /v1/pool-templates", "reader", projects=True),
    Content(answer=templates.PoolTemplateList),
    "List the templates of pools by name.",
)
GET_POOL_TEMPLATE = Operation(
    Access("GET /v1/pool-templates/{name+}", "reader", projects=True),
    Content(answer=templates.PoolTemplate),
    "Get one template of pools.",
)
PUT_POOL_TEMPLATE = Operation(
    Access("PUT /v1/pool-templates/{name+}", "operator"),
    Content(body=templates.PoolTemplateWanted, answer=templates.PoolTemplate),
    "Create or update a template; its existing pools stay as they are.",
)
DELETE_POOL_TEMPLATE: Operation[None] = Operation(
    Access("DELETE /v1/pool-templates/{name+}", "operator"),
    Content(),
    "Delete a template; its existing pools stay until they are idle.",
)
LIST_SLOTS = Operation(
    Access("GET /v1/pools/{name+}:slots", "reader", "governor", projects=True),
    Content(parameters=pages.PageAsked, answer=slots.SlotPage),
    "List the named slots of a pool: their states, labels and holders.",
)
ADD_SLOTS: Operation[None] = Operation(
    Access("POST /v1/pools/{name+}:slots", "operator"),
    Content(body=slots.SlotsWanted),
    "Add free slots to a pool with native slots.",
)
DRAIN_SLOT = Operation(
    Access("POST /v1/pools/{name+}:slots/{slot}/drain", "operator"),
    Content(body=slots.DrainWanted, answer=slots.Drained),
    "Never grant a slot again; remove it once it is free, unless it is to be kept.",
)
RESUME_SLOT = Operation(
    Access("POST /v1/pools/{name+}:slots/{slot}/resume", "operator"),
    Content(answer=slots.Slot),
    "Let a drained slot be granted again.",
)
LABEL_SLOT = Operation(
    Access("PUT /v1/pools/{name+}:slots/{slot}/labels", "operator"),
    Content(body=slots.SlotLabelsWanted, answer=slots.Slot),
    "Replace the labels of a slot; its lease keeps it.",
)
REMOVE_SLOT: Operation[None] = Operation(
    Access("DELETE /v1/pools/{name+}:slots/{slot}", "operator"),
    Content(),
    "Remove a free slot of a pool with native slots.",
)
LIST_BOSKOS_RESOURCES = Operation(
    Access("GET /v1/pools/{name+}:boskos", "reader"),
    Content(parameters=pages.PageAsked, answer=boskos.BoskosResourcePage),
    "List the slots of a pool as resources of Boskos.",
)
IMPORT_BOSKOS_RESOURCES = Operation(
    Access("PUT /v1/pools/{name+}:boskos", "admin"),
    Content(body=boskos.BoskosResourcesWanted, answer=boskos.BoskosOutcomes, bulk=True),
    "Give the slots of a pool the states, owners and user data of Boskos' resources.",
)
GET_POOL_CONTENTS = Operation(
    Access("GET /v1/pools/{name+}:contents", "reader", "governor", projects=True),
    Content(parameters=reports.PoolContentsAsked, answer=reports.PoolContents),
    "Get one pool with its leases and its line, as of one revision.",
)
GET_POOL_HISTORY = Operation(
    Access("GET /v1/pools/{name+}:history", "reader", projects=True),
    Content(parameters=past.HistoryAsked, answer=past.PoolHistory),
    "Return occupied units and waiting tickets of a pool over time.",
)
REHEARSE_POOL = Operation(
    Access("POST /v1/pools/{name+}:rehearse", "reader", projects=True),
    Content(body=past.RehearsalWanted, answer=past.Rehearsal),
    "Replay the past jobs of a pool with other limits and pacings; changes nothing.",
)
LIST_POOLS = Operation(
    Access("GET /v1/pools", "reader", "governor", projects=True),
    Content(parameters=pages.PageAsked, answer=admission.PoolPage),
    "List pools by name, with occupied units and the first waiting ticket.",
)
PAUSE_POOL = Operation(
    Access("POST /v1/pools/{name+}:pause", "operator"),
    Content(body=admission.PauseWanted, answer=admission.Pool),
    "Stop granting from a pool; everything else continues.",
)
RESUME_POOL = Operation(
    Access("POST /v1/pools/{name+}:resume", "operator"),
    Content(answer=admission.Pool),
    "Resume granting from a paused pool.",
)
GET_POOL_REPORT = Operation(
    Access("GET /v1/pools/{name+}:report", "reader", projects=True),
    Content(parameters=reports.ReportAsked, answer=reports.PoolReport),
    "Report how long leases waited and lasted, and the outcomes of starts by limit.",
)
GET_POOL = Operation(
    Access("GET /v1/pools/{name+}", "reader", "governor", projects=True),
    Content(answer=admission.Pool),
    "Get one pool.",
)
PUT_POOL = Operation(
    Access("PUT /v1/pools/{name+}", "operator"),
    Content(body=admission.PoolWanted, answer=admission.Pool),
    "Create or update a pool; a lower limit revokes nothing.",
)
DELETE_POOL: Operation[None] = Operation(
    Access("DELETE /v1/pools/{name+}", "operator"),
    Content(),
    "Delete a pool that has no leases and no tickets.",
)
