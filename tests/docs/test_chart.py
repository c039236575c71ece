"""The Helm chart is made from what it says it is, and its schema, values and settings agree."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from moorage import __version__
from moorage.config.settings import FIELDS
from moorage.faces.health import PATHS
from moorage.faces.placement.routes import first_segments
from moorage.integrations.metal3.install import FILES, MANIFESTS
from tests.docs.test_links import ROOT

CHART = ROOT / "deploy/helm/moorage"
SCRIPT = ROOT / "scripts/chart"
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA = yaml.safe_load((CHART / "values.schema.json").read_text())


def test_it_is_current() -> None:
    """All files that `scripts/chart` makes are as it would make them: `make chart-files`."""
    done = subprocess.run(
        [sys.executable, SCRIPT, "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_changed_manifest_is_found(tmp_path: Path) -> None:
    """This is the control: in a checkout with another manifest, the chart is out of date."""
    for path in ("src", "contrib", "scripts", "deploy"):
        (tmp_path / path).mkdir()
    (tmp_path / "src/moorage").symlink_to(ROOT / "src/moorage")
    (tmp_path / "contrib/prometheus").mkdir()
    rules = (ROOT / "contrib/prometheus/moorage.rules.yml").read_text()
    changed = rules.replace("for: 1m", "for: 2m", 1)
    (tmp_path / "contrib/prometheus/moorage.rules.yml").write_text(changed)
    (tmp_path / "deploy/helm").symlink_to(ROOT / "deploy/helm")
    (tmp_path / "scripts/chart").write_text(SCRIPT.read_text())
    done = subprocess.run(
        [sys.executable, tmp_path / "scripts/chart", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == (
        "deploy/helm/moorage/files/alerts.yml is out of date: run `make chart-files`\n"
    )


def test_it_has_each_manifest() -> None:
    """All that the command prints is in the chart, except for the namespace."""
    copied = {path.stem for path in (CHART / "files/metal3").iterdir()}
    assert copied == {*FILES} - {"namespace"}
    names = {path.stem for path in (ROOT / "src" / MANIFESTS.replace(".", "/")).glob("*.yaml")}
    assert names == {*FILES}


def test_its_routes_have_each_path() -> None:
    """An Ingress publishes what the server answers, but neither the metrics nor what tests call."""
    composed = (ROOT / "src/moorage/serve/compose.py").read_text()
    faces = {*re.findall(r'faces\["(\w+)"\]', composed)}
    assert {"v1", "ui", "_testing"} <= faces
    served = {*faces, *PATHS, *first_segments()}
    published = {*(CHART / "files/paths.txt").read_text().split()}
    assert served - published == {"metrics", "_testing"}
    assert published <= served


def test_its_version_is_ours() -> None:
    """A chart installs the release that it belongs to."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)


def test_the_defaults_are_valid() -> None:
    """The schema takes the values of the chart."""
    jsonschema.validate(VALUES, SCHEMA)


def objects(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every object of a schema with named fields, with its path."""
    if "properties" in schema:
        yield path, schema
        for name, field in schema["properties"].items():
            yield from objects(field, f"{path}.{name}".lstrip("."))


def test_unknown_values_are_refused_everywhere() -> None:
    """No object of the schema with named fields has others."""
    found = dict(objects(SCHEMA))
    assert len(found) > 30
    assert [path for path, schema in found.items() if schema["additionalProperties"]] == []


def test_every_setting_is_charted() -> None:
    """Each setting of the server is in the schema, or the chart sets it, or it makes no sense."""
    taken = set(SCHEMA["properties"]["server"]["properties"]["settings"]["properties"])
    templates = "".join(path.read_text() for path in (CHART / "templates").rglob("_*.tpl"))
    set_here = {name.lower() for name in re.findall(r"name: MOORAGE_([A-Z_]+)$", templates, re.M)}
    assert taken & set_here == set()
    assert {*FIELDS} - taken - set_here == {"epoch_file", "testing"}


def test_every_value_is_used() -> None:
    """A value that no template reads would be set in vain."""
    templates = "".join(
        path.read_text() for path in (CHART / "templates").rglob("*") if path.is_file()
    )
    words = set(re.findall(r"\w+", templates))
    rows = re.findall(r"^\| `([\w.]+)` \|", (CHART / "README.md").read_text(), flags=re.M)
    assert len(rows) > 100
    assert [row for row in rows if row.rpartition(".")[2] not in words] == []


WRONG = {
    "a field": {"server": {"replica": 2}},
    "a setting": {"server": {"settings": {"log_leval": "info"}}},
    "a type": {"gate": {"enabled": "yes"}},
    "a name": {"server": {"tls": {"secret": "UPPER"}}},
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_values_are_refused(case: str) -> None:
    """The schema refuses them; `make chart` tries more, with Helm."""
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(WRONG[case], SCHEMA)


ADDRESSES = [
    *("postgresql://moorage@db.example.org/moorage", "postgresql:///moorage?host=/run/pg"),
    *("postgresql://db.example.org:5433/moorage", "postgres://a@b:1,c:2/d?sslmode=verify-full"),
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_addresses_of_databases(address: str) -> None:
    """All forms of libpq without a password are taken."""
    jsonschema.validate({"server": {"database": {"postgresql": {"address": address}}}}, SCHEMA)
