"""The DAGs."""

from datetime import timedelta
from functools import partial

from airflow.sdk import dag, get_current_context, task
from airflow_lease import lease

from moorage.client import Client
from tests.orchestrators.runs.bodies import installed, tried_again


@dag(schedule=None)
def installation() -> None:
    """Run the task."""

    @task
    def install() -> None:
        """Work with a unit; without the recipe, nobody ends the block at SIGTERM."""
        wanted = get_current_context()["dag_run"].conf
        if wanted["how"] == "unhandled":
            installed(Client().lease, **{**wanted, "how": "leased"})
        else:
            installed(lease, **wanted)

    install()


@dag(schedule=None)
def killed() -> None:
    """Run the task whose first try is killed."""

    @task(retries=1, retry_delay=timedelta(seconds=0))
    def install() -> None:
        """Work with a unit; `anew`, with a key for each try."""
        wanted = get_current_context()["dag_run"].conf
        if wanted["how"] == "anew":
            installed(partial(lease, key=None), **wanted)
        else:
            installed(lease, **wanted)

    install()


@dag(schedule=None)
def retried() -> None:
    """Run the task that is retried."""

    @task(retries=1, retry_delay=timedelta(seconds=0))
    def install() -> None:
        """Try again."""
        context = get_current_context()
        tried_again(lease, **context["dag_run"].conf, tries=context["ti"].try_number)

    install()


installation()
killed()
retried()
