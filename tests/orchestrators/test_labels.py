"""Who waits, or wonders about a lease, finds the run that has it."""

import re
import subprocess
import sys

from moorage.client import Client
from tests.client.leasing.pools import leases
from tests.orchestrators.gate import Gate
from tests.orchestrators.lines import pool_of
from tests.orchestrators.services.orchestrator import Orchestrator

LABELS = {
    "prefect": {
        "flow": "installation",
        "flow_run": r"[\w-]+",
        "flow_run_id": "RUN",
        "task_run": r"install-\w+",
        "task_run_id": r"[-0-9a-f]{36}",
        "job": r"installation/install-\w+ try 1, run [\w-]+",
    },
    "dagster": {
        "job_name": "installation",
        "run_id": "RUN",
        "step": "install",
        "job": "installation/install try 1, run [0-9a-f]{8}",
    },
    "airflow": {
        "dag_id": "installation",
        "run_id": "RUN",
        "task_id": "install",
        "job": r"installation/install try 1, run manual__\S+",
    },
}
"""The labels of each recipe, as patterns; RUN: the run's id."""


def test_a_lease_names_its_run_its_task_and_its_try(
    orchestrator: Orchestrator, client: Client, served: tuple[str, str], gate: Gate
) -> None:
    """The labels that every client adds are there, too."""
    pool = pool_of(client)
    run = orchestrator.start("installation", pool, "leased", gate.address)
    gate.arrived(1)
    (held,) = leases(client, pool)
    wanted = LABELS[orchestrator.name]
    for label, pattern in wanted.items():
        pattern_of_run = pattern.replace("RUN", re.escape(run.rpartition("/")[2]))
        assert re.fullmatch(pattern_of_run, held.labels[label]), (label, held.labels)
    assert held.labels["pid"] == str(gate.pids[0])
    assert held.labels.keys() - wanted.keys() == {"host", "user", "pid", "command"}
    assert f"job {held.labels['job'][:40]}" in listed(served, pool)


def listed(served: tuple[str, str], pool: str) -> str:
    """Return what `moorage lease list` prints about a pool."""
    command = [sys.executable, "-m", "moorage", "lease", "list", "--pool", pool]
    url, token = served
    command += ["--url", url, "--token", token]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
