"""The DAGs whose tasks wait without a process."""

from airflow.sdk import dag, get_current_context
from airflow_deferrable import leased_task

from tests.orchestrators.runs.bodies import work

POOL = "{{ dag_run.conf['pool'] }}"


@dag(schedule=None)
def deferred() -> None:
    """Run the task."""

    @leased_task(POOL)
    def install() -> None:
        """Work with a unit."""
        work(get_current_context()["dag_run"].conf["gate"])

    install()


@dag(schedule=None)
def deferred_shortly() -> None:
    """Run the task whose lease does not last until it is resumed."""

    @leased_task(POOL, ttl="2s")
    def install() -> None:
        """Work with a unit."""
        work(get_current_context()["dag_run"].conf["gate"])

    install()


deferred()
deferred_shortly()
