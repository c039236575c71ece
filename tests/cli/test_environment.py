"""A misspelt `MOORAGE_*` variable is refused by `serve` and reported by the other commands."""

import re
from pathlib import Path

import pytest

from moorage.cli.support.environment import known_variables, misspelt
from moorage.client.run import labels
from moorage.client.run.exit_codes import RUN_FAILED
from moorage.client.run.variables import READ, UNLIMITED, nearly
from moorage.client.targets import CA_FILE, CERTIFICATE, CONTEXT, TOKEN, TOKEN_FILE, URL
from moorage.config.settings import FIELDS
from tests.cli.command import moorage, refusal
from tests.client.single import finished

KNOWN = known_variables()

ROOT = Path(__file__).resolve().parents[2]
SEARCHED = ("src", "tests", "bench", "scripts")
INVENTED = {"MOORAGE_NAME", "MOORAGE_LEASE"}
"""Prefixes of names that stand for any variable in the sources."""

LINKS = (
    "MOORAGE_SERVICE_HOST",
    "MOORAGE_SERVICE_PORT",
    "MOORAGE_SERVICE_PORT_HTTP",
    "MOORAGE_PORT",
    "MOORAGE_PORT_8778_TCP",
    "MOORAGE_PORT_8778_TCP_PROTO",
    "MOORAGE_PORT_8778_TCP_ADDR",
    "MOORAGE_API_SERVICE_HOST",
    "MOORAGE_API_PORT_443_UDP_PORT",
)
"""What Kubernetes sets for Services named moorage and moorage-api."""


def test_serve_refuses_a_misspelt_variable(tmp_path: Path) -> None:
    """`serve` refuses it in one line with the nearest name, and creates no file."""
    line = refusal(2, "serve", "--listen", "127.0.0.1:0", directory=tmp_path, MOORAGE_LISTN="x")
    assert "MOORAGE_LISTN" in line
    assert "did you mean MOORAGE_LISTEN?" in line
    line = refusal(2, "serve", directory=tmp_path, MOORAGE_NONSENSE="x")
    assert line.endswith("remove or rename it")
    assert [*tmp_path.iterdir()] == []


def test_other_commands_warn_of_a_misspelt_variable(tmp_path: Path) -> None:
    """Other commands only warn, since they may not need it.

    The single file warns only of names close to its own.
    """
    done = moorage("config", "show", "--json", directory=tmp_path, MOORAGE_LISTN="x")
    assert done.returncode == 0
    assert done.stderr.count("\n") == 1
    assert "MOORAGE_LISTEN?" in done.stderr
    run = ("run", "--pool", "p", "--", "true")
    done = moorage(*run, directory=tmp_path, MOORAGE_ULR="x")
    assert done.returncode == RUN_FAILED
    assert "did you mean MOORAGE_URL?" in done.stderr
    done = finished(*run, MOORAGE_ULR="x", MOORAGE_LISTEN="x")
    assert done.returncode == RUN_FAILED
    assert "did you mean MOORAGE_URL?" in done.stderr
    assert "LISTEN" not in done.stderr


@pytest.mark.parametrize("name", ["URI", "TOKENS", "TOKN", "CONTEXTS", "UR", "URLS"])
def test_names_close_to_important_variables(name: str) -> None:
    """Slips are noticed in the variables without which a command finds no server."""
    assert len(misspelt({f"MOORAGE_{name}": "1"})) == 1
    assert len(nearly({f"MOORAGE_{name}": "1"})) == 1


def test_known_variables_are_not_reported() -> None:
    """Known names are settings, variables of a lease's command, and what Kubernetes sets."""
    known = {*KNOWN, *LINKS, "PATH", "MOORAGE", "_MOORAGE_COMPLETE"}
    assert misspelt(dict.fromkeys(known, "1")) == []
    assert nearly(dict.fromkeys(known, "1")) == []
    assert misspelt({"MOORAGE_PORTS": "1", "MOORAGE_LEASE_IDS": "1"}) != []
    assert {f"MOORAGE_{name.upper()}" for name in FIELDS} < KNOWN
    own = {URL, TOKEN, TOKEN_FILE, CONTEXT, CERTIFICATE, CA_FILE, UNLIMITED, labels.VARIABLE}
    assert own == set(READ)


def test_every_variable_in_the_sources_is_known() -> None:
    """Otherwise the commands would refuse variables of the project's own tests and tools."""
    name = re.compile(r"\b(MOORAGE_[A-Z0-9_]*[A-Z0-9])(?![A-Za-z0-9_])")
    spoken_of = {
        found
        for folder in SEARCHED
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".sh", "") and path.is_file() and path != Path(__file__)
        for found in name.findall(path.read_text(errors="replace"))
    }
    assert {"MOORAGE_SOAK", "MOORAGE_URL", "MOORAGE_LEASE_TOKEN"} <= spoken_of
    assert spoken_of - KNOWN == INVENTED
