"""Prefect: its API server, and a process that serves the flows, as `flow.serve` does."""

from tests.orchestrators.services.api import answer
from tests.orchestrators.services.orchestrator import RUNNING, RUNS, Orchestrator

ENDED = {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"}


class Prefect(Orchestrator):
    name = "prefect"
    completed = "COMPLETED"
    cancelled = "CANCELLED"

    def up(self) -> None:
        """Start the server, then the process that starts a process for each flow run."""
        self.variables |= {
            "PREFECT_HOME": str(self.home),
            "DO_NOT_TRACK": "1",
            "PREFECT_RUNNER_POLL_FREQUENCY": "1",
        }
        server = self.server(
            ["python", "-m", f"{RUNS}.prefect_server"], r"prefect: serving (?P<url>\S+)"
        )
        self.url = server.url
        self.variables["PREFECT_API_URL"] = self.url
        self.server(
            ["python", "-m", f"{RUNS}.with_prefect"], "(?P<url>deployments are being served)"
        )

    def start(self, what: str, pool: str, how: str, gate: str) -> str:
        """Start a run of a deployment."""
        flow = "busy" if how == "busy" else what
        deployment = answer(f"{self.url}/deployments/name/{flow}/test")["id"]
        given = {"pool": pool, "gate": gate} | ({} if how == "busy" else {"how": how})
        wanted = {"parameters": given, "state": {"type": "SCHEDULED"}}
        made = answer(f"{self.url}/deployments/{deployment}/create_flow_run", wanted)
        return str(made["id"])

    def cancel(self, run: str) -> None:
        """Do what `prefect flow-run cancel` and the button do."""
        answer(f"{self.url}/flow_runs/{run}/set_state", {"state": {"type": "CANCELLING"}})

    def state(self, run: str) -> str:
        """Return the type of the flow run's state."""
        state = str(answer(f"{self.url}/flow_runs/{run}")["state_type"])
        return state if state in ENDED else RUNNING
