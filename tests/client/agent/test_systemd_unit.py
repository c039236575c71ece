"""The unit of the agent fits the program; `make units` checks it with systemd's own programs."""

import configparser
import shlex
from pathlib import Path

from moorage.client.agent.options import COMMANDS
from moorage.client.agent.run import LOCK_FILE
from moorage.client.main import _parser
from moorage.client.run.exit_codes import CONFLICT
from tests.units.units import UNITS, settings

UNIT = UNITS / "moorage-agent.service"


def test_the_command_of_the_unit_is_valid() -> None:
    """It is one that the single file accepts; its token is the credential of the unit."""
    service = settings(UNIT.read_text())["Service"]
    (command,) = service["ExecStart"]
    words = shlex.split(command.replace("$AGENT_OPTIONS", "--root x --libvirt-dir y"))
    assert words[:3] == ["/usr/bin/python3", "-I", "/opt/moorage/moorage.pyz"]
    given = vars(_parser(words[3:]).parse_args(words[3:]))
    assert given["name"] in COMMANDS
    assert given["token_file"] == "${CREDENTIALS_DIRECTORY}/token"
    assert service["LoadCredential"] == ["token:/etc/moorage/agent.token"]


def test_the_unit_fits_the_program() -> None:
    """The lock is in its folder; a clone of another machine is not started again."""
    service = settings(UNIT.read_text())["Service"]
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
    for section, values in settings(UNIT.read_text()).items():
        assert {name: given[-1] for name, given in values.items()} == dict(parser[section])
