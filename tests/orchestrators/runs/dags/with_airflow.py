"""A run of a DAG: `python tests/orchestrators/runs/dags/with_airflow.py POOL NAME HOW`."""

import asyncio
import sys
from contextlib import nullcontext

from airflow.sdk import dag, get_current_context, task
from airflow_lease import lease

from tests.orchestrators.runs.gate import work


async def blocking(name: str) -> None:
    """Block the event loop while the lease is held."""
    work(name)


@dag(schedule=None)
def installation() -> None:
    """Run the task."""

    @task(retries=1)
    def install() -> None:
        """Work with a unit, or, as a control, without."""
        wanted = get_current_context()["dag_run"].conf
        with nullcontext() if wanted["how"] == "bare" else lease(wanted["pool"]):
            if wanted["how"] == "busy":
                asyncio.run(blocking(wanted["name"]))
            else:
                work(wanted["name"])

    install()


made = installation()

if __name__ == "__main__":
    ended = made.test(run_conf=dict(zip(("pool", "name", "how"), sys.argv[1:], strict=True)))
    sys.exit(ended.state != "success")
