"""A run of a job: `python -m tests.orchestrators.runs.with_dagster POOL NAME HOW`."""

import asyncio
import sys
from contextlib import nullcontext

from dagster import Config, OpExecutionContext, RetryPolicy, job, op
from dagster_lease import MoorageResource

from tests.orchestrators.runs.gate import work


class Wanted(Config):
    """What a run does."""

    pool: str
    name: str
    how: str


@op(retry_policy=RetryPolicy(max_retries=1))
def install(context: OpExecutionContext, config: Wanted, moorage: MoorageResource) -> None:
    """Work with a unit, or, as a control, without."""
    bare = config.how == "bare"
    with nullcontext() if bare else moorage.lease(context, config.pool):
        if config.how == "busy":
            asyncio.run(blocking(config.name))
        else:
            work(config.name)


async def blocking(name: str) -> None:
    """Block the event loop while the lease is held."""
    work(name)


@job(resource_defs={"moorage": MoorageResource()})
def installation() -> None:
    """Run the op."""
    install()


def settings(pool: str, name: str, how: str) -> dict[str, object]:
    """Return the configuration of a run."""
    return {"ops": {"install": {"config": {"pool": pool, "name": name, "how": how}}}}


if __name__ == "__main__":
    installation.execute_in_process(settings(*sys.argv[1:]))
