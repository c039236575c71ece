"""What each orchestrator can do, and where it runs."""

import os
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.e2e.support.server import Server

ROOT = Path(__file__).resolve().parents[3]
RUNS = "tests.orchestrators.runs"
READY_SECONDS = 180.0
END_SECONDS = 180.0
RUNNING = "running"


def environment(name: str, where: tuple[str, str]) -> dict[str, str]:
    """Return the variables of the runs of an orchestrator; `where`: Moorage's URL and a token."""
    paths = [ROOT, ROOT / "src", ROOT / "contrib/orchestrators"]
    url, token = where
    return {
        **os.environ,
        "PATH": f"{ROOT / f'.venv-{name}/bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "MOORAGE_URL": url,
        "MOORAGE_TOKEN": token,
    }


class Orchestrator:
    """An orchestrator with its server and all that it needs to execute runs.

    Use it as a context manager; `variables` are those of its processes.
    """

    name: str
    completed: str
    """The state of a run that has succeeded."""
    cancelled: str
    """The state of a run that was cancelled."""

    def __init__(self, home: Path, where: tuple[str, str]) -> None:
        self.home = home
        self.variables = environment(self.name, where)
        self._processes = ExitStack()

    def up(self) -> None:
        """Start what it needs."""
        raise NotImplementedError

    def start(self, what: str, pool: str, how: str, gate: str) -> str:
        """Start a run of the flow, job or DAG; return its id.

        `what` is `installation`, or `retried` with one retry. `how` is described in
        `runs/bodies.py`.
        """
        raise NotImplementedError

    def cancel(self, run: str) -> None:
        """End a run, as a user does."""
        raise NotImplementedError

    def state(self, run: str) -> str:
        """Return how a run has ended, in the words of the orchestrator, or RUNNING."""
        raise NotImplementedError

    def ended(self, run: str) -> str:
        """Wait for the end of a run; return its state. Raises TimeoutError."""
        until = time.monotonic() + END_SECONDS
        while (state := self.state(run)) == RUNNING:
            if time.monotonic() > until:
                raise TimeoutError(f"{self.name}: run {run} has not ended")
        return state

    def apart(self, folder: Path) -> dict[str, str]:
        """Return the variables for commands beside its server, with files in a folder."""
        return self.variables

    def server(self, words: Sequence[str], ready: str, more: Mapping[str, str] = {}) -> Server:
        """Start a process in its environment; it ends with the orchestrator.

        `words` begins with a program of the environment; `ready` is the line that it says then.
        """
        return self._processes.enter_context(
            Server(
                words,
                {**self.variables, **more},
                ROOT,
                ready=re.compile(ready),
                seconds=READY_SECONDS,
            )
        )

    def __enter__(self) -> Self:
        with ExitStack() as failed:
            failed.enter_context(self._processes)
            self.up()
            failed.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._processes.close()
