"""Leases for Airflow: a task waits in line for its units, and releases them at its end.

Copy this file into the folder of your DAGs. It needs Airflow 3, the package moorage,
MOORAGE_URL and MOORAGE_TOKEN:

    @task(retries=3)
    def install(cluster: str) -> None:
        with lease("install/azure", hold="20m"):
            ...
"""

from __future__ import annotations

import hashlib
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowTaskTerminated

from moorage.client import Client, Holding


@contextmanager
def lease(pool: str, units: int = 1, **options: Any) -> Iterator[Holding]:
    """Hold a lease during the block; the options are those of `Client.lease`."""
    with _termination(), Client().lease(pool, units, **named(pool, options)) as held:
        yield held


def named(pool: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options with labels that name the task, and with the key of its place in line."""
    ti = get_current_context()["ti"]
    labels = {"dag_id": ti.dag_id, "run_id": ti.run_id, "task_id": ti.task_id}
    task = ti.task_id
    if ti.map_index is not None and ti.map_index >= 0:
        labels["map_index"], task = str(ti.map_index), f"{task}[{ti.map_index}]"
    # `moorage lease list` shows this label. It is no part of the request, so each try has its own.
    labels["job"] = f"{ti.dag_id}/{task} try {ti.try_number}, run {ti.run_id}"[:255]
    # A retry has the same ids, so it gets its place in line or its lease again.
    place = "\n".join(["airflow", ti.dag_id, ti.run_id, ti.task_id, str(ti.map_index), pool])
    options.setdefault("key", hashlib.sha256(place.encode()).hexdigest())
    return {**options, "labels": {**labels, **options.get("labels", {})}}


@contextmanager
def _termination() -> Iterator[None]:
    """End the block on SIGTERM, which Airflow sends to a task that was failed, cleared or stopped.

    Airflow itself only calls `on_kill`, and kills the process seconds later.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread gets signals
        return
    before, owner = signal.getsignal(signal.SIGTERM), os.getpid()

    def terminated(number: int, frame: Any) -> None:
        if callable(before):
            before(number, frame)
        if os.getpid() == owner:
            raise AirflowTaskTerminated("Airflow ended the task")

    signal.signal(signal.SIGTERM, terminated)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
