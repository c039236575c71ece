"""A real Moorage server, and the three orchestrators in environments of their own."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.client import Client
from tests.client.leasing.pools import serving
from tests.e2e.support.server import Server
from tests.orchestrators.gate import Gate
from tests.orchestrators.orchestrator import ROOT, Orchestrator

PREFECT_READY = re.compile(r"prefect: serving (?P<url>\S+)")


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Return the URL of a Moorage server and its administrator's token."""
    with serving("sqlite", tmp_path_factory.mktemp("moorage")) as where:
        yield where


@pytest.fixture
def client(served: tuple[str, str]) -> Client:
    """Return the administrator's client."""
    return Client(*served)


@pytest.fixture
def gate() -> Iterator[Gate]:
    """Return the gate of the runs of one test."""
    with Gate() as made:
        yield made


@pytest.fixture(scope="session", params=["prefect", "dagster", "airflow"])
def installed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Path, dict[str, str]]]:
    """Return the name of an orchestrator, its folder, and what is in its environment."""
    name = request.param
    home = tmp_path_factory.mktemp(name)
    paths = [ROOT, ROOT / "src", ROOT / "contrib/orchestrators"]
    variables = {**os.environ, "PYTHONPATH": ":".join(map(str, paths))}
    python = str(ROOT / f".venv-{name}/bin/python")
    if name == "prefect":
        variables |= {"PREFECT_HOME": str(home), "DO_NOT_TRACK": "1"}
        command = [python, "-m", "tests.orchestrators.runs.prefect_server"]
        with Server(command, variables, ready=PREFECT_READY, seconds=60) as server:
            yield name, home, {**variables, "PREFECT_API_URL": server.url}
    elif name == "dagster":
        (home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
        yield name, home, {**variables, "DAGSTER_HOME": str(home)}
    else:
        variables |= {
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "tests/orchestrators/runs/dags"),
        }
        subprocess.run(
            [python, "-m", "airflow", "db", "migrate"],
            env=variables,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        yield name, home, variables


@pytest.fixture
def orchestrator(
    installed: tuple[str, Path, dict[str, str]],
    served: tuple[str, str],
    gate: Gate,
    tmp_path: Path,
) -> Iterator[Orchestrator]:
    """Return what starts runs."""
    name, home, variables = installed
    url, token = served
    variables = {**variables, "MOORAGE_URL": url, "MOORAGE_TOKEN": token, "GATE": gate.address}
    with Orchestrator(name, home, variables, tmp_path) as made:
        yield made
