"""`moorage import boskos` and `moorage export boskos`, with a server and Boskos' calls."""

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import moorage
from tests.cli.pooled import Cli
from tests.e2e.support.server import Server, serve

CONFIGURATION = """
resources:
- {type: project, state: dirty, names: [project-1, project-2, project-3]}
- {type: cluster, state: free, min-count: 1, max-count: 4, lifespan: 2h}
"""


def resource(kind: str, name: str, state: str, owner: str = "", **status: Any) -> dict[str, Any]:
    """Return an object as kubectl prints it."""
    return {
        "apiVersion": "boskos.k8s.io/v1",
        "kind": "ResourceObject",
        "metadata": {"name": name, "namespace": "test-pods", "uid": name, "resourceVersion": "7"},
        "spec": {"type": kind},
        "status": {"state": state, "owner": owner, "lastUpdate": "2026-01-02T03:04:05Z", **status},
    }


RESOURCES = [
    resource("project", "project-1", "busy", "job-1", userData={"leasedResources": "[x]"}),
    resource("project", "project-2", "cleaning", "Janitor"),
    resource("project", "project-3", "free"),
    resource("cluster", "6d2b", "leased", "job-2"),
    resource("cluster", "0a1c", "free", expirationDate="2126-01-02T03:04:05Z"),
]


class Moved:
    """A server with Boskos' configuration, the command line, and a client of Boskos."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.cli = Cli(folder, server.url)
        self.url = server.boskos_url

    def post(self, path: str, **arguments: str) -> tuple[int, str]:
        """Send what a client of Boskos sends."""
        asked = f"{self.url}{path}?{urllib.parse.urlencode(arguments)}"
        try:
            with urllib.request.urlopen(urllib.request.Request(asked, method="POST")) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def exported(self) -> dict[str, Any]:
        """Return the objects that are exported, by name."""
        found = json.loads(
            "\n".join(self.cli.lines("export", "boskos", "--namespace", "test-pods"))
        )
        return {one["metadata"]["name"]: one for one in found["items"]}


@pytest.fixture
def moved(tmp_path: Path) -> Iterator[Moved]:
    """Return a server to which nothing has moved yet."""
    (tmp_path / "boskos.yaml").write_text(CONFIGURATION)
    (tmp_path / "resources.json").write_text(json.dumps({"kind": "List", "items": RESOURCES}))
    options = ("--boskos-listen", "127.0.0.1:0", "--boskos-config", str(tmp_path / "boskos.yaml"))
    with serve(tmp_path / "moorage.sqlite", *options) as server:
        (tmp_path / "moorage.toml").write_text('database = "sqlite:///moorage.sqlite"\n')
        yield Moved(tmp_path, server)


def test_resources_move_in_with_their_owners(moved: Moved) -> None:
    """Owners go on as before: nothing that is held is free, nothing that is free is lost."""
    said = moved.cli.lines("import", "boskos", "--file", "resources.json")
    assert said[0] == "cluster: 2 imported, 1 removed"
    assert said[-1] == "project: 3 imported"
    asked = {"type": "project", "state": "free", "dest": "busy", "owner": "new"}
    status, body = moved.post("/acquire", **asked)
    assert (status, json.loads(body)["name"]) == (200, "project-3")
    assert moved.post("/acquire", **asked)[0] == 404
    assert moved.post("/release", name="project-1", dest="dirty", owner="another")[0] == 401
    assert moved.post("/update", name="6d2b", owner="job-2", state="leased")[0] == 200
    assert moved.post("/release", name="project-1", dest="dirty", owner="job-1")[0] == 200
    reset = {"type": "project", "state": "cleaning", "expire": "1h", "dest": "dirty"}
    assert json.loads(moved.post("/reset", **reset)[1]) == {"project-2": "Janitor"}


def test_the_same_again_changes_nothing(moved: Moved) -> None:
    """... and what is exported is what was imported."""
    moved.cli.lines("import", "boskos", "--file", "resources.json")
    assert moved.cli.lines("import", "boskos", "--file", "resources.json") == [
        "cluster: 2 unchanged",
        "project: 3 unchanged",
    ]
    for one in RESOURCES:
        there = moved.exported()[one["metadata"]["name"]]
        assert there["status"] == {"userData": {}, **one["status"]}
        assert there["spec"] == one["spec"]


def test_what_cannot_move_is_named(moved: Moved, tmp_path: Path) -> None:
    """A type and a resource that the configuration does not have; the others have moved."""
    items = [
        *RESOURCES,
        resource("project", "project-9", "free"),
        resource("gone", "x", "free"),
        resource("project", "project-3", "free") | {"spec": {}},
    ]
    (tmp_path / "odd.json").write_text(json.dumps({"items": items}))
    done = moorage("import", "boskos", "--file", "odd.json", directory=tmp_path)
    assert done.returncode == 1
    assert "refused: project-9: Boskos' configuration does not name it: add it there" in done.stdout
    assert "gone: There is no pool 'gone'." in done.stderr
    assert "ResourceObject project-3: it has no type" in done.stderr
    assert moved.exported()["project-1"]["status"]["owner"] == "job-1"


def test_a_dynamic_type_without_resources_is_missed(moved: Moved, tmp_path: Path) -> None:
    """The configuration lacks one, has another one, and of the third one Boskos has a resource."""
    dynamic = [
        {"apiVersion": "boskos.k8s.io/v1", "kind": "DRLCObject", "metadata": {"name": name}}
        for name in ("missed", "cluster", "gone")
    ]
    items = [*dynamic, resource("gone", "x", "free")]
    (tmp_path / "dynamic.json").write_text(json.dumps({"items": items}))
    done = moorage("import", "boskos", "--file", "dynamic.json", "--json", directory=tmp_path)
    assert done.returncode == 1
    assert json.loads(done.stdout)["problems"] == [
        "missed: a dynamic type in Boskos, but not in the server's configuration of Boskos",
        "gone: There is no pool 'gone'.",
    ]


@pytest.mark.parametrize(
    "words, said",
    [
        (("--file", "missing"), "cannot be read: No such file"),
        (("--file", "boskos.yaml", "--namespace", "x"), "give either --file"),
        (("--file", "moorage.sqlite"), "it is neither YAML nor JSON"),
    ],
)
def test_wrong_inputs(moved: Moved, words: tuple[str, ...], said: str) -> None:
    """One line says what to change."""
    assert said in moved.cli.refusal(2, "import", "boskos", *words)
