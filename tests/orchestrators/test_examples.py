"""The examples of docs/howto/orchestrators.md run, with the recipe copied beside them."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from moorage.client import Client
from moorage.wire.admission import PoolWanted
from tests.client.leasing.pools import leases
from tests.orchestrators.services.every import EVERY
from tests.orchestrators.services.orchestrator import END_SECONDS, ROOT, Orchestrator
from tests.support.pages import examples

*FIRST, DEFERRABLE = examples(ROOT / "docs/howto/orchestrators.md")
EXAMPLES = dict(zip(EVERY, FIRST, strict=True))
POOL, HOLD = "install/azure", 1200.0
COMMANDS = {
    "prefect": ["python", "-c", "from example import installation; installation('azure-1')"],
    "dagster": ["dagster", "job", "execute", "-f", "example.py", "-j", "installation"],
    "airflow": ["airflow", "dags", "test", "installation"],
}


def run(orchestrator: Orchestrator, example: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run an example by a command; `src` is there instead of an installed Moorage."""
    for recipe in (ROOT / "contrib/orchestrators").glob(f"{orchestrator.name}_*.py"):
        shutil.copy(recipe, folder)
    (folder / "example.py").write_text(example)
    paths = os.pathsep.join((str(ROOT / "src"), str(folder)))
    variables = {**orchestrator.apart(folder), "PYTHONPATH": paths}
    return subprocess.run(
        COMMANDS[orchestrator.name],
        env=variables,
        cwd=folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        timeout=END_SECONDS,
    )


def test_the_example(orchestrator: Orchestrator, client: Client, tmp_path: Path) -> None:
    """It holds the lease that it asks for; a wrong name is noticed."""
    tried(EXAMPLES[orchestrator.name], orchestrator, client, tmp_path)


@pytest.mark.parametrize("orchestrator", ["airflow"], indirect=True)
def test_the_deferrable_example(orchestrator: Orchestrator, client: Client, tmp_path: Path) -> None:
    """With room, it has its lease without being deferred."""
    tried(DEFERRABLE, orchestrator, client, tmp_path)


def tried(example: str, orchestrator: Orchestrator, client: Client, tmp_path: Path) -> None:
    """Run an example with a wrong name, which must fail, then as it is."""
    client.admission.pool_put(POOL, PoolWanted(limit=1, hold=None, pacing=None))
    before = {lease.id for lease in leases(client, POOL)}  # of other orchestrators
    wrong = re.sub(r"(_lease|_deferrable) import ", r"\1 import no_", example)
    assert wrong != example
    assert run(orchestrator, wrong, tmp_path).returncode != 0
    assert {lease.id for lease in leases(client, POOL)} == before
    done = run(orchestrator, example, tmp_path)
    assert done.returncode == 0, done.stdout
    (held,) = (lease for lease in leases(client, POOL) if lease.id not in before)
    assert (held.cause, held.hold) == ("released", HOLD)
    assert held.labels["job"].startswith("installation/install")
