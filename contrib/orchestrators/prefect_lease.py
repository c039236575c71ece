"""Leases for Prefect: a flow or a task waits in line for its units, and releases them at its end.

Copy this file beside your flows. It needs the package moorage, MOORAGE_URL and
MOORAGE_TOKEN:

    @task(retries=3)
    def install(cluster: str) -> None:
        with lease("install/azure", hold="20m"):
            ...

In an async flow or task, write `async with async_lease(...)`.
"""

from __future__ import annotations

import hashlib
from typing import Any

from prefect.context import FlowRunContext, TaskRunContext

from moorage.client import AsyncClient, AsyncHolding, Client, Holding


def lease(pool: str, units: int = 1, **options: Any) -> Holding:
    """Return a lease for a `with` block; the options are those of `Client.lease`."""
    return Client().lease(pool, units, **_named(pool, options))


def async_lease(pool: str, units: int = 1, **options: Any) -> AsyncHolding:
    """Return a lease for an `async with` block; a block that is busy keeps it, too."""
    return AsyncClient().lease(pool, units, **_named(pool, options))


def _named(pool: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options with labels that name the run, and with the key of its place in line."""
    flow, task = FlowRunContext.get(), TaskRunContext.get()
    labels, names, tries, where = {}, [], 0, ""
    if flow is not None and flow.flow_run is not None:
        run = flow.flow_run
        labels = {"flow": flow.flow.name, "flow_run": run.name, "flow_run_id": str(run.id)}
        names, tries, where = [flow.flow.name], run.run_count, f", run {run.name}"
    if task is not None:
        run = task.task_run
        if run.flow_run_id is not None:
            labels["flow_run_id"] = str(run.flow_run_id)
        labels |= {"task_run": run.name, "task_run_id": str(run.id)}
        names, tries = [*names, run.name], run.run_count
    if not labels:
        raise RuntimeError("prefect_lease works in a flow or a task; elsewhere, use moorage.client")
    # `moorage lease list` shows this label. It is no part of the request, so each try has its own.
    labels["job"] = f"{'/'.join(names)} try {tries}{where}"[:255]
    # A retry has the same ids, so it gets its place in line or its lease again.
    same = labels.get("task_run_id") or labels["flow_run_id"]
    options.setdefault("key", hashlib.sha256(f"prefect\n{same}\n{pool}".encode()).hexdigest())
    return {**options, "labels": {**labels, **options.get("labels", {})}}
