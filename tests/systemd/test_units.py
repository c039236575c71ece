"""The units of contrib/systemd."""

from pathlib import Path

import pytest

UNITS = sorted((Path(__file__).parents[2] / "contrib" / "systemd").glob("*.service"))


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_boot_waits_for_no_unit_without_a_limit(unit: Path) -> None:
    """The target multi-user, and `systemctl enable --now`, wait for each start that it wants."""
    lines = unit.read_text().splitlines()
    if "WantedBy=multi-user.target" in lines:
        assert not [line for line in lines if line.replace(" ", "") == "TimeoutStartSec=infinity"]
        assert "TimeoutStartSec=0" not in lines
    else:
        assert unit.stem == "moorage-backup"  # a timer starts it


def test_there_are_units() -> None:
    """The agent, the backup, the gate, the governor, the reporter and the server."""
    assert len(UNITS) == 6
