"""Leases for Dagster: a resource with which an op or an asset waits in line for its units.

Copy this file beside your definitions. It needs the package moorage, MOORAGE_URL and
MOORAGE_TOKEN:

    @asset
    def cluster(context: AssetExecutionContext, moorage: MoorageResource) -> None:
        with moorage.lease(context, "install/azure", hold="20m"):
            ...

    Definitions(assets=[cluster], resources={"moorage": MoorageResource()})
"""

import hashlib
from typing import Any

from dagster import AssetExecutionContext, ConfigurableResource, OpExecutionContext

from moorage.client import Client, Holding


class MoorageResource(ConfigurableResource):
    """A Moorage server; without a URL and a token, that of MOORAGE_URL and MOORAGE_TOKEN."""

    url: str | None = None
    token: str | None = None

    def lease(
        self,
        context: OpExecutionContext | AssetExecutionContext,
        pool: str,
        units: int = 1,
        **options: Any,
    ) -> Holding:
        """Return a lease for a `with` block; the options are those of `Client.lease`."""
        executed = context.get_step_execution_context()
        step, tries = executed.step.key, executed.previous_attempt_count + 1
        labels = {"job_name": context.job_name, "run_id": context.run_id, "step": step}
        # `moorage lease list` shows this label. It is no part of the request, so each try has its
        # own.
        labels["job"] = f"{context.job_name}/{step} try {tries}, run {context.run_id[:8]}"[:255]
        # A retry of a step has the same key, so it gets its place in line or its lease again.
        place = f"dagster\n{context.run_id}\n{step}\n{pool}"
        options.setdefault("key", hashlib.sha256(place.encode()).hexdigest())
        options["labels"] = {**labels, **options.get("labels", {})}
        return Client(self.url, self.token).lease(pool, units, **options)
