"""Serves the flows as deployments: `python -m tests.orchestrators.runs.with_prefect`."""

from prefect import flow, serve, task
from prefect.runtime import task_run
from prefect_lease import async_lease, lease

from tests.orchestrators.runs.bodies import installed, tried_again, work


@task
def install(pool: str, how: str, gate: str) -> None:
    """Work with a unit."""
    installed(lease, pool, how, gate)


@flow
def installation(pool: str, how: str, gate: str) -> None:
    """Work in a task."""
    install(pool, how, gate)


@flow
async def busy(pool: str, gate: str) -> None:
    """Block the event loop while the lease is held."""
    async with async_lease(pool):
        work(gate)


@task(retries=1)
def retry(pool: str, how: str, gate: str) -> None:
    """Try again."""
    tried_again(lease, pool, how, gate, task_run.run_count)


@flow
def retried(pool: str, how: str, gate: str) -> None:
    """Work in a task that is retried."""
    retry(pool, how, gate)


if __name__ == "__main__":
    serve(*(flow.to_deployment("test") for flow in (installation, busy, retried)))
