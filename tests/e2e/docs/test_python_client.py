"""Every example of docs/howto/python-client.md runs, as a program of its own."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.client import Client
from tests.client.single import BARE, ROOT, SECONDS
from tests.e2e.support.server import serve
from tests.support.pages import examples

PAGE = ROOT / "docs/howto/python-client.md"
PRINTED = [
    r"install/azure 2 2\n",
    r"granted with fencing token 1\.\d+\.0\n",
    r"granted with fencing token 1\.\d+\.0\n",
    r"granted \['azure-1'\]\n",
    r"build\ncopy\nswitch\n",
    r"(create|configure) with \S+\n(configure|start) with \S+\nstart with \S+\n",
    r"(\d granted with fencing token \S+\n){4}occupied: 0\n",
    r"pool_unknown\n",
    r"3 created\n\{'[-0-9a-f]{36}': \{'MEMORY_MB': 8192\}\}\n(\w+ .+\n)*consumer [-0-9a-f]{36}\n",
    r"1 created\n",
]
"""What each example prints, in the order of the page."""


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Return the variables for a new server."""
    database = tmp_path_factory.mktemp("page") / "moorage.sqlite"
    with serve(database, "--no-access-log") as server:
        token = Path(f"{database}.token").read_text().strip()
        yield {"MOORAGE_URL": server.url, "MOORAGE_TOKEN": token}


def run(example: str, where: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run an example; every warning is an error."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", example],
        env={**BARE, **where, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )


def test_the_examples(where: dict[str, str]) -> None:
    """They run in the order of the page and print what they should; a wrong name is noticed."""
    found = examples(PAGE)
    assert len(found) == len(PRINTED)
    for example, printed in zip(found, PRINTED, strict=True):
        done = run(example, where)
        assert (done.returncode, done.stderr) == (0, ""), example
        assert re.fullmatch(printed, done.stdout), done.stdout
    wrong = found[1].replace("client.lease(", "client.leese(")
    assert run(wrong, where).returncode == 1
    pool = Client(where["MOORAGE_URL"], where["MOORAGE_TOKEN"]).admission.pool("install/azure")
    assert (pool.occupied, pool.waiting) == (0, 0)


def test_the_table_of_errors() -> None:
    """The page lists every error that the client exports."""
    import moorage.client

    errors = {name for name in moorage.client.__all__ if name.endswith("Error")}
    listed = set(re.findall(r"(?m)^\| `(\w+Error)` \|", PAGE.read_text()))
    assert listed == errors - {"MoorageError"}
    for name in errors:
        assert issubclass(getattr(moorage.client, name), moorage.client.MoorageError)
