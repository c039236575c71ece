"""Airflow: its API server and its scheduler, which executes tasks on this machine."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.e2e.support.server import Server
from tests.orchestrators.services.api import answer
from tests.orchestrators.services.orchestrator import ROOT, RUNNING, RUNS, Orchestrator

ENDED = {"success", "failed"}
EMPTY = "empty.db"
"""A copy of the database without a DAG."""

TRIGGERER_SECONDS = 6
"""After this long without a sign of life of a triggerer, another one takes over what it did."""


class Airflow(Orchestrator):
    name = "airflow"
    completed = "success"
    cancelled = "failed"
    _triggerer: Server | None = None

    def up(self) -> None:
        """Make the database, store the DAGs in it, and start the two processes."""
        self.variables |= {
            "AIRFLOW_HOME": str(self.home),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "tests/orchestrators/runs/dags"),
            "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "AIRFLOW__API_AUTH__JWT_SECRET": "only-for-tests-" * 5,
            "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "1",
            "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.2",
            "AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": "1",
            "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": str(TRIGGERER_SECONDS),
        }
        self.command("db", "migrate")
        shutil.copy(self.home / "airflow.db", self.home / EMPTY)
        self.command("dags", "reserialize")
        server = self.server(
            ["python", "-m", f"{RUNS}.airflow_server"], r"airflow: serving (?P<url>\S+)"
        )
        self.url = f"{server.url}/api/v2/dags"
        self.variables["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] = f"{server.url}/execution/"
        self.server(
            ["airflow", "scheduler", "--skip-serve-logs"], "(?P<url>Starting the scheduler)"
        )

    def triggerer(self) -> Server:
        """Return a running triggerer, which waits in place of deferred tasks; start one if needed.

        Its start takes long, so tests share it.
        """
        if self._triggerer is None or self._triggerer.process.poll() is not None:
            self._triggerer = self.server(
                ["airflow", "triggerer", "--skip-serve-logs"], "(?P<url>Starting the triggerer)"
            )
        return self._triggerer

    def command(self, *words: str) -> None:
        """Run a command of Airflow."""
        subprocess.run(
            ["airflow", *words],
            env=self.variables,
            check=True,
            stdout=subprocess.DEVNULL,
        )

    def apart(self, folder: Path) -> dict[str, str]:
        """Return the variables for commands with a database and DAGs of their own."""
        database = folder / "airflow.db"
        shutil.copy(self.home / EMPTY, database)
        return {
            **self.variables,
            "AIRFLOW__CORE__DAGS_FOLDER": str(folder),
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{database}",
        }

    def start(self, what: str, pool: str, how: str, gate: str) -> str:
        """Trigger a run of a DAG."""
        conf = {"pool": pool, "how": how, "gate": gate}
        wanted = {"logical_date": None, "conf": conf}
        run = answer(f"{self.url}/{what}/dagRuns", wanted)["dag_run_id"]
        return f"{what}/dagRuns/{run}"

    def cancel(self, run: str) -> None:
        """Mark the running task as failed."""
        task = f"{self.url}/{run}/taskInstances/install"
        answer(task, {"new_state": "failed"}, "PATCH")

    def clear(self, run: str) -> None:
        """Clear the running task: Airflow ends this try and begins the next."""
        what, _, number = run.split("/")
        wanted: dict[str, Any] = {"dry_run": False, "only_failed": False, "dag_run_id": number}
        answer(f"{self.url}/{what}/clearTaskInstances", {**wanted, "task_ids": ["install"]})

    def task_state(self, run: str) -> str | None:
        """Return the state of the task of a run, such as `deferred`."""
        state = answer(f"{self.url}/{run}/taskInstances/install")["state"]
        return None if state is None else str(state)

    def slots(self) -> tuple[int, int]:
        """Return how many slots of Airflow's own pool tasks occupy, and how many are deferred."""
        found = answer(f"{self.url.removesuffix('dags')}pools/default_pool")
        return int(found["occupied_slots"]), int(found["deferred_slots"])

    def pause(self, what: str, is_paused: bool = True) -> None:
        """Start no tasks of a DAG, not even those that are resumed; or start them again."""
        answer(f"{self.url}/{what}", {"is_paused": is_paused}, "PATCH")

    def state(self, run: str) -> str:
        """Return the state of the run."""
        state = str(answer(f"{self.url}/{run}")["state"])
        return state if state in ENDED else RUNNING
