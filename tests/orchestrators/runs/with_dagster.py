"""The jobs; `dagster_server.py` loads them."""

from functools import partial

from dagster import Config, Definitions, OpExecutionContext, RetryPolicy, job, op
from dagster_lease import MoorageResource

from tests.orchestrators.runs.bodies import installed, tried_again


class Wanted(Config):
    """What a run does."""

    pool: str
    how: str
    gate: str


@op
def install(context: OpExecutionContext, config: Wanted, moorage: MoorageResource) -> None:
    """Work with a unit."""
    installed(partial(moorage.lease, context), config.pool, config.how, config.gate)


@op(retry_policy=RetryPolicy(max_retries=1))
def retry(context: OpExecutionContext, config: Wanted, moorage: MoorageResource) -> None:
    """Try again."""
    lease = partial(moorage.lease, context)
    tried_again(lease, config.pool, config.how, config.gate, context.retry_number + 1)


@job
def installation() -> None:
    """Run the op."""
    install()


@job
def retried() -> None:
    """Run the op that is retried."""
    retry()


jobs = Definitions(jobs=[installation, retried], resources={"moorage": MoorageResource()})
