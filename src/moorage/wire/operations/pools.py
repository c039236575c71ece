"""Pools, their named slots, their history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.wire.operations.operation import Operation, Types

if TYPE_CHECKING:
    from moorage.wire import admission, pages, pool_reports, slots
else:
    admission, pages, pool_reports, slots = map(
        Types, ("admission", "pages", "pool_reports", "slots")
    )

LIST_SLOTS = Operation(
    "GET /v1/pools/{name+}:slots",
    role="reader",
    scopes=("governor",),
    projects=True,
    parameters=pages.PageAsked,
    answer=slots.SlotPage,
    summary="List the named slots of a pool: their states, labels and holders.",
)

ADD_SLOTS: Operation[None] = Operation(
    "POST /v1/pools/{name+}:slots",
    role="operator",
    body=slots.SlotsWanted,
    summary="Make free slots in a pool with native slots.",
)

DRAIN_SLOT = Operation(
    "POST /v1/pools/{name+}:slots/{slot}/drain",
    role="operator",
    body=slots.DrainWanted,
    answer=slots.Drained,
    summary="Never grant a slot again; it goes once it is free, unless it is to be kept.",
)

RESUME_SLOT = Operation(
    "POST /v1/pools/{name+}:slots/{slot}/resume",
    role="operator",
    answer=slots.Slot,
    summary="Let a drained slot be granted again.",
)

LABEL_SLOT = Operation(
    "PUT /v1/pools/{name+}:slots/{slot}/labels",
    role="operator",
    body=slots.SlotLabelsWanted,
    answer=slots.Slot,
    summary="Replace the labels of a slot; its lease keeps it.",
)

REMOVE_SLOT: Operation[None] = Operation(
    "DELETE /v1/pools/{name+}:slots/{slot}",
    role="operator",
    summary="Remove a free slot of a pool with native slots.",
)

GET_POOL_CONTENTS = Operation(
    "GET /v1/pools/{name+}:contents",
    role="reader",
    scopes=("governor",),
    projects=True,
    parameters=pool_reports.PoolContentsAsked,
    answer=pool_reports.PoolContents,
    summary="Get one pool with its leases and its line, as of one revision.",
)

GET_POOL_HISTORY = Operation(
    "GET /v1/pools/{name+}:history",
    role="reader",
    projects=True,
    parameters=pool_reports.HistoryAsked,
    answer=pool_reports.PoolHistory,
    summary="Return occupied units and waiting tickets of a pool over time.",
)

REHEARSE_POOL = Operation(
    "POST /v1/pools/{name+}:rehearse",
    role="reader",
    projects=True,
    body=pool_reports.RehearsalWanted,
    answer=pool_reports.Rehearsal,
    summary="Replay the past jobs of a pool with other limits and pacings; changes nothing.",
)

LIST_POOLS = Operation(
    "GET /v1/pools",
    role="reader",
    scopes=("governor",),
    projects=True,
    parameters=pages.PageAsked,
    answer=admission.PoolPage,
    summary="List pools by name, with occupied units and the first waiting ticket.",
)

PAUSE_POOL = Operation(
    "POST /v1/pools/{name+}:pause",
    role="operator",
    body=admission.PauseWanted,
    answer=admission.Pool,
    summary="Stop granting from a pool; everything else continues.",
)

RESUME_POOL = Operation(
    "POST /v1/pools/{name+}:resume",
    role="operator",
    answer=admission.Pool,
    summary="Resume granting from a paused pool.",
)

GET_POOL_REPORT = Operation(
    "GET /v1/pools/{name+}:report",
    role="reader",
    projects=True,
    parameters=pool_reports.ReportAsked,
    answer=pool_reports.PoolReport,
    summary="Report how long leases waited and lasted, and the outcomes of starts by limit.",
)

GET_POOL = Operation(
    "GET /v1/pools/{name+}",
    role="reader",
    scopes=("governor",),
    projects=True,
    answer=admission.Pool,
    summary="Get one pool.",
)

PUT_POOL = Operation(
    "PUT /v1/pools/{name+}",
    role="operator",
    body=admission.PoolWanted,
    answer=admission.Pool,
    summary="Create or update a pool; a lower limit revokes nothing.",
)

DELETE_POOL: Operation[None] = Operation(
    "DELETE /v1/pools/{name+}",
    role="operator",
    summary="Delete a pool that has no leases and no tickets.",
)
