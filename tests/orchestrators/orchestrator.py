"""Starts runs of an orchestrator, each in a process of its own."""

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.guard import Guard

ROOT = Path(__file__).resolve().parents[2]
RUNS = "tests.orchestrators.runs"
SCRIPTS = {
    "prefect": ["-m", f"{RUNS}.with_prefect"],
    "dagster": ["-m", f"{RUNS}.with_dagster"],
    "airflow": ["tests/orchestrators/runs/dags/with_airflow.py"],
}
END_SECONDS = 60.0


class Run:
    """One run in a process group of its own."""

    def __init__(self, command: list[str], variables: Mapping[str, str], output: Path) -> None:
        self._output = output
        with output.open("w") as file:
            self.process = subprocess.Popen(
                command,
                env=dict(variables),
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._guard = Guard(self.process.pid, "KILL", group=True)

    def ended(self) -> tuple[int, str]:
        """Wait for its end; return the exit code and the output."""
        code = self.process.wait(END_SECONDS)
        return code, self._output.read_text()

    def kill(self) -> None:
        """Kill it and everything that it started."""
        os.killpg(self.process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Leave nothing behind."""
        if self.process.poll() is None:
            self.kill()
            self.process.wait()
        self._guard.close()
        assert self.process.stdin is not None
        self.process.stdin.close()


class Orchestrator:
    """Starts runs; those that are left are killed at its end. Use it as a context manager."""

    def __init__(self, name: str, home: Path, variables: Mapping[str, str], folder: Path) -> None:
        self.name = name
        self._home = home
        self._variables = variables
        self._folder = folder
        self._runs: list[Run] = []

    def start(self, pool: str, how: str, script: str | None = None) -> Run:
        """Start a run that wants a unit of the pool.

        `how` is `leased`; `bare`, without a lease; or `busy`, with an event loop that is blocked.
        """
        number = str(len(self._runs))
        variables = dict(self._variables)
        if self.name == "airflow":  # SQLite has one writer: each run has a database of its own
            database = self._folder / f"{number}.db"
            shutil.copy(self._home / "airflow.db", database)
            variables["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] = f"sqlite:///{database}"
        what = SCRIPTS[self.name] if script is None else ["-m", f"{RUNS}.{script}"]
        command = [str(ROOT / f".venv-{self.name}/bin/python"), *what, pool, f"run-{number}", how]
        run = Run(command, variables, self._folder / f"{number}.log")
        self._runs.append(run)
        return run

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for run in self._runs:
            run.close()
