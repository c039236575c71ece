"""The unit of the agent: its command is valid, and systemd understands and approves of it."""

import configparser
import re
import shlex
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from moorage.client.agent.options import COMMANDS
from moorage.client.agent.run import LOCK_FILE
from moorage.client.main import _parser
from moorage.client.run.exit_codes import CONFLICT
from tests.client.single import ROOT

UNIT = ROOT / "contrib/systemd/moorage-agent.service"
EXPOSURE_MAX = 2.5
"""The exposure that systemd computes, 0 to 10; up to 2.5 is OK for a service that is root."""

ANALYZE = shutil.which("systemd-analyze")
needs_systemd = pytest.mark.skipif(ANALYZE is None, reason="systemd is not installed")


def settings() -> dict[str, dict[str, list[str]]]:
    """Return the settings of each section; one may be set several times."""
    found: dict[str, dict[str, list[str]]] = {}
    for line in UNIT.read_text().replace("\\\n", " ").splitlines():
        if section := re.fullmatch(r"\[(\w+)\]", line):
            found[section[1]] = defaultdict(list)
        elif line and not line.startswith("#"):
            name, equals, value = line.partition("=")
            assert equals, line
            found[[*found][-1]][name].append(value)
    return found


def test_the_command_of_the_unit_is_valid() -> None:
    """It is one that the single file accepts; its token is the credential of the unit."""
    service = settings()["Service"]
    (command,) = service["ExecStart"]
    words = shlex.split(command.replace("$AGENT_OPTIONS", "--root x --libvirt-dir y"))
    assert words[:3] == ["/usr/bin/python3", "-I", "/opt/moorage/moorage.pyz"]
    given = vars(_parser(words[3:]).parse_args(words[3:]))
    assert given["name"] in COMMANDS
    assert given["token_file"] == "${CREDENTIALS_DIRECTORY}/token"
    assert service["LoadCredential"] == ["token:/etc/moorage/agent.token"]


def test_the_unit_fits_the_program() -> None:
    """The lock is in its folder; a clone of another machine is not started again."""
    service = settings()["Service"]
    assert [str(Path("/run") / name) for name in service["RuntimeDirectory"]] == [
        str(Path(LOCK_FILE).parent)
    ]
    assert service["RestartPreventExitStatus"] == [str(CONFLICT)]
    assert service["Restart"] == ["on-failure"]  # a decommissioned agent ends with 0
    for forbidden in ("ProtectKernelTunables", "ProcSubset", "ProtectProc", "PrivateUsers"):
        assert forbidden not in service, f"{forbidden}: the agent could not see or change the pools"


def test_the_reader_of_units_reads_what_configparser_does() -> None:
    """Both find the same last value of each setting."""
    parser = configparser.ConfigParser(strict=False, interpolation=None, allow_no_value=True)
    parser.optionxform = str  # type: ignore[method-assign] # keeps the case of names
    parser.read_string(UNIT.read_text().replace("\\\n", " "))
    for section, values in settings().items():
        assert {name: given[-1] for name, given in values.items()} == dict(parser[section])


@needs_systemd
def test_systemd_understands_the_unit() -> None:
    """No unknown setting, no wrong value; whether the program is installed does not matter here."""
    done = subprocess.run(
        [str(ANALYZE), "verify", str(UNIT)], capture_output=True, text=True, check=False
    )
    complaints = [
        line for line in done.stderr.splitlines() if UNIT.name in line and "executable" not in line
    ]
    assert complaints == []


@needs_systemd
def test_a_mistake_in_the_unit_is_found(tmp_path: Path) -> None:
    """The check above would notice a setting that systemd ignores."""
    wrong = tmp_path / UNIT.name
    wrong.write_text(UNIT.read_text().replace("ProtectHome=yes", "ProtectHomes=yes"))
    done = subprocess.run(
        [str(ANALYZE), "verify", str(wrong)], capture_output=True, text=True, check=False
    )
    assert "ProtectHomes" in done.stderr


@needs_systemd
def test_the_unit_is_hardened() -> None:
    """Systemd's own measure of what a service could do beyond its task."""
    done = subprocess.run(
        [str(ANALYZE), "security", "--offline=yes", "--no-pager", str(UNIT)],
        capture_output=True,
        text=True,
        check=False,
    )
    if "unrecognized option" in done.stderr:
        pytest.skip("this systemd cannot analyse units that are not installed")
    measured = re.search(r"exposure level for moorage-agent.service: ([\d.]+)", done.stdout)
    assert measured is not None, done.stdout + done.stderr
    assert float(measured[1]) <= EXPOSURE_MAX
