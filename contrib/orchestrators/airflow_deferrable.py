"""Deferrable tasks for Airflow: while a task waits for its units, it has no process and no slot.

Copy this file and airflow_lease.py into the folder of plugins, where the triggerer finds them, too.
They need Airflow 3 with a triggerer, the package moorage, MOORAGE_URL and MOORAGE_TOKEN:

    @leased_task("install/azure", hold="20m", task={"retries": 3})
    def install(cluster: str) -> None:
        ...
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk.bases.decorator import DecoratedOperator, task_decorator_factory
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from airflow.triggers.base import BaseTrigger, TriggerEvent
from airflow_lease import lease, named

from moorage.client import (
    AsyncClient,
    MoorageError,
    NotInTimeError,
    RevokedError,
    SupersededError,
    UnreachableError,
    WithdrawnError,
)

TTL = "10m"
"""How long a lease waits for a slot of its task, and how long it outlives a worker that died."""

TRY_SECONDS = 5.0
"""How long a task with a slot waits for its lease before it is deferred."""

WAIT_SECONDS = 2 * 3600.0
"""How long a task waits in line, by default."""

WANTED = (RevokedError, SupersededError, WithdrawnError)
"""Somebody has decided that the task is not to start: a retry would ask again."""


class LeasedOperator(PythonOperator):
    """Calls a function with a lease. The options are those of `Client.lease`, except `wait`.

    `wait` is in seconds: how long the task waits in line, since it was deferred.
    """

    template_fields = (*PythonOperator.template_fields, "moorage_pool", "options")

    def __init__(
        self,
        *,
        moorage_pool: str,
        units: int = 1,
        wait: float = WAIT_SECONDS,
        options: dict[str, Any] | None = None,
        **task: Any,
    ) -> None:
        super().__init__(**task)
        self.moorage_pool = moorage_pool
        self.units, self.wait = units, wait
        self.options = {"ttl": TTL, **(options or {})}

    def execute(self, context: Any) -> Any:
        """Call the function if there is room; otherwise wait without a process, and try again."""
        with ExitStack() as block:
            try:
                block.enter_context(
                    lease(self.moorage_pool, self.units, **self.options, wait=TRY_SECONDS)
                )
            except WANTED as ended:
                raise AirflowFailException(str(ended)) from ended
            except (NotInTimeError, UnreachableError):
                options = named(self.moorage_pool, {**self.options})
                trigger = LeaseTrigger(self.moorage_pool, self.units, self.wait, options)
                patience = timedelta(seconds=self.wait)
                self.defer(trigger=trigger, method_name="resumed", timeout=patience)
            return super().execute(context)

    def resumed(self, context: Any, event: dict[str, Any]) -> Any:
        """Go on after the trigger: the lease is there, or the task fails."""
        if "failed" in event:
            raise (AirflowFailException if event["final"] else AirflowException)(event["failed"])
        return self.execute(context)


class LeaseTrigger(BaseTrigger):
    """Waits for the turn of a task, which then asks with the same key and gets the same lease.

    It renews the lease once, at its grant. A triggerer that is ended or killed loses nothing: the
    ticket is passed over until the next one asks with its key, and keeps its place for 5 minutes.
    """

    def __init__(self, pool: str, units: int, wait: float, options: dict[str, Any]) -> None:
        super().__init__()
        self.pool, self.units, self.wait, self.options = pool, units, wait, options

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class and its arguments."""
        made_of = {"pool": self.pool, "units": self.units, "wait": self.wait}
        return f"{__name__}.{type(self).__name__}", {**made_of, "options": self.options}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Wait for the lease, and leave it to the task."""
        asked = AsyncClient().lease(self.pool, self.units, **self.options, wait=self.wait)
        try:
            granted = await asked.turn()
        except MoorageError as error:
            yield TriggerEvent({"failed": str(error), "final": isinstance(error, WANTED)})
        else:
            yield TriggerEvent({"lease": granted.id})


class _Decorated(DecoratedOperator, LeasedOperator):
    custom_operator_name = "@leased_task"
    template_fields = LeasedOperator.template_fields

    def __init__(self, *, python_callable: Any, op_args: Any, op_kwargs: Any, **rest: Any) -> None:
        called = {"python_callable": python_callable, "op_args": op_args, "op_kwargs": op_kwargs}
        super().__init__(kwargs_to_upstream=called, **called, **rest)


def leased_task(
    pool: str,
    units: int = 1,
    *,
    wait: float = WAIT_SECONDS,
    task: dict[str, Any] | None = None,
    **options: Any,
) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator like `@task`; `task` has its arguments, such as `retries`."""
    mine = {"moorage_pool": pool, "units": units, "wait": wait, "options": options}

    def decorate(function: Callable[..., Any]) -> Any:
        return task_decorator_factory(
            function, decorated_operator_class=_Decorated, **mine, **(task or {})
        )

    return decorate
