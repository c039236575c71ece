"""Dagster: its webserver, which starts a process for each run."""

from typing import Any

from tests.orchestrators.services.api import answer
from tests.orchestrators.services.orchestrator import RUNNING, RUNS, Orchestrator

ENDED = {"SUCCESS", "FAILURE", "CANCELED"}
OPS = {"installation": "install", "retried": "retry"}

# Without the queue of runs, which needs a daemon.
SETTINGS = """
telemetry:
  enabled: false
run_coordinator:
  module: dagster.core.run_coordinator
  class: DefaultRunCoordinator
"""

LAUNCH = """
mutation ($params: ExecutionParams!) {
  launchRun(executionParams: $params) {
    __typename
    ... on LaunchRunSuccess { run { runId } }
    ... on PythonError { message }
  }
}
"""
TERMINATE = """
mutation ($run: String!) {
  terminateRun(runId: $run) { __typename }
}
"""
STATUS = """
query ($run: ID!) {
  runOrError(runId: $run) { ... on Run { status } }
}
"""


class Dagster(Orchestrator):
    name = "dagster"
    completed = "SUCCESS"
    cancelled = "CANCELED"

    def up(self) -> None:
        """Start the webserver; it starts the process that loads the jobs."""
        (self.home / "dagster.yaml").write_text(SETTINGS)
        self.variables["DAGSTER_HOME"] = str(self.home)
        server = self.server(
            ["python", "-m", f"{RUNS}.dagster_server"], r"dagster: serving (?P<url>\S+)"
        )
        self.url = server.url

    def start(self, what: str, pool: str, how: str, gate: str) -> str:
        """Launch a run of a job."""
        config = {"pool": pool, "how": how, "gate": gate}
        job = {
            "repositoryLocationName": f"{RUNS}.with_dagster",
            "repositoryName": "__repository__",
            "jobName": what,
        }
        params = {
            "selector": job,
            "runConfigData": {"ops": {OPS[what]: {"config": config}}},
            "mode": "default",
        }
        launched = self._answer(LAUNCH, params=params)["launchRun"]
        assert launched["__typename"] == "LaunchRunSuccess", launched
        return str(launched["run"]["runId"])

    def cancel(self, run: str) -> None:
        """Do what the button Terminate does."""
        done = self._answer(TERMINATE, run=run)["terminateRun"]
        assert done["__typename"] == "TerminateRunSuccess", done

    def state(self, run: str) -> str:
        """Return the status of the run."""
        status = str(self._answer(STATUS, run=run)["runOrError"]["status"])
        return status if status in ENDED else RUNNING

    def _answer(self, query: str, **variables: object) -> dict[str, Any]:
        found = answer(f"{self.url}/graphql", {"query": query, "variables": variables})
        assert "errors" not in found, found
        return dict(found["data"])
