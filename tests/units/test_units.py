"""The units that the guide installs: systemd understands them, and thinks that they are safe."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.cli.support.environment import known_variables
from tests.e2e.support.server import MOORAGE, serve
from tests.e2e.support.typed import ROOT
from tests.units.units import (
    SYSTEM,
    UNITS,
    environment_of,
    installed,
    machine,
    run,
    settings,
    typed,
)

INSTALLED = ("moorage.service", "moorage.socket", "moorage-backup.service", "moorage-backup.timer")
EXPOSURE = {
    "moorage.service": 1.5,
    "moorage-backup.service": 1.5,
    "moorage-gate.service": 1.5,
    "moorage-ironic-governor.service": 1.5,
    "moorage-ironic-reporter.service": 1.5,
    "moorage-agent.service": 2.5,
}
"""The exposure that systemd computes, 0 to 10, at most; the agent must be root."""

LOOSE = "[Service]\nExecStart=/bin/kill\n"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a root into which the guide has installed the units, and a folder for typing."""
    made = machine(tmp_path_factory.mktemp("machine"))
    desk = tmp_path_factory.mktemp("desk")
    (desk / "contrib").symlink_to(ROOT / "contrib")
    for name in ("cert.pem", "key.pem"):
        shutil.copy(ROOT / f"tests/serve/tls-{name}", desk / name)
    left = typed(made, "Install", desk)
    assert [command.split()[:2] for command in left if "venv" not in command] == [
        *(["/opt/moorage/bin/pip", "install"],) * 2,
        ["systemctl", "daemon-reload"],
        ["systemctl", "status"],
        ["cd", "/var/lib/moorage"],
        ["systemctl", "edit"],
        ["systemctl", "stop"],
        ["systemctl", "start"],
        ["curl", "--fail"],
        ["systemctl", "restart"],
    ]
    for path in UNITS.iterdir():
        if path.suffix in (".service", ".socket", ".timer"):
            shutil.copy(path, made / SYSTEM / path.name)
    yield made


def test_what_is_installed(root: Path) -> None:
    """Each file of the folder is one of a unit; secrets are for root alone; all is enabled."""
    files = installed(root)
    assert files["etc/moorage/moorage.env"] == files["etc/moorage/key.pem"] == 0o600
    for name in INSTALLED:
        assert files[f"{SYSTEM}/{name}"] == 0o644
    assert files[f"{SYSTEM}/moorage.service.d/tls.conf"] == 0o644
    names = {path.name for path in UNITS.iterdir()}
    assert names - {Path(name).name for name in files} == {"moorage-tls.conf"}
    enabled = {
        str(path.relative_to(root / SYSTEM))
        for path in (root / SYSTEM).rglob("*")
        if path.is_symlink()
    }
    assert enabled == {
        "multi-user.target.wants/moorage.service",
        "moorage.service.wants/moorage-boskos.socket",
        "sockets.target.wants/moorage-boskos.socket",
        "sockets.target.wants/moorage.socket",
        "timers.target.wants/moorage-backup.timer",
    }


def complaints(root: Path) -> str:
    """Return what systemd says of all units of Moorage in a root."""
    units = [path.name for path in (root / SYSTEM).iterdir() if path.is_file()]
    done = run("systemd-analyze", "verify", f"--root={root}", "--man=no", *units)
    return done.stdout + done.stderr


def test_systemd_understands_the_units(root: Path) -> None:
    """No unknown setting, no wrong value, no program that is missing."""
    assert complaints(root) == ""


@pytest.mark.parametrize(
    ("unit", "right", "wrong"),
    [
        ("moorage.service", "ProtectHome=yes", "ProtectHomes=yes"),
        ("moorage.service", "WatchdogSec=2min", "WatchdogSec=two minutes"),
        ("moorage.service", "/opt/moorage/bin/moorage serve", "/opt/moorage/bin/mooring serve"),
        ("moorage.socket", "ListenStream=127.0.0.1:8778", "ListenStream=127.0.0.1:port"),
        ("moorage-backup.timer", "OnCalendar=*-*-* 02:30:00", "OnCalendar=at night"),
    ],
)
def test_a_mistake_is_found(root: Path, tmp_path: Path, unit: str, right: str, wrong: str) -> None:
    """The check above would notice it."""
    other = tmp_path / "machine"
    shutil.copytree(root, other, symlinks=True)
    path = other / SYSTEM / unit
    assert right in path.read_text()
    path.write_text(path.read_text().replace(right, wrong))
    assert complaints(other) != ""


def exposure(root: Path, unit: str, threshold: float) -> tuple[bool, float]:
    """Return whether systemd finds a unit safe enough, and its exposure."""
    done = run(
        *("systemd-analyze", "security", "--offline=true", "--no-pager", f"--root={root}"),
        *(f"--threshold={round(threshold * 10)}", unit),
    )
    measured = re.search(rf"exposure level for {re.escape(unit)}: ([\d.]+)", done.stdout)
    assert measured is not None, done.stdout + done.stderr
    return done.returncode == 0, float(measured[1])


def test_each_service_has_a_ceiling() -> None:
    """Nobody forgets a new one."""
    assert {path.name for path in UNITS.glob("*.service")} == {*EXPOSURE}


@pytest.mark.parametrize("unit", EXPOSURE)
def test_no_unit_dumps_its_memory(unit: str) -> None:
    """The watchdog ends a process by SIGABRT; systemd's own measure does not ask about dumps."""
    assert settings((UNITS / unit).read_text())["Service"]["LimitCORE"] == ["0"]


@pytest.mark.parametrize("unit", EXPOSURE)
def test_the_units_are_hardened(root: Path, unit: str) -> None:
    """Systemd's own measure of what a service could do beyond its task."""
    safe, found = exposure(root, unit, EXPOSURE[unit])
    assert safe, found


def test_a_loose_unit_is_found(root: Path) -> None:
    """A unit without any of it is above every ceiling."""
    (root / SYSTEM / "loose.service").write_text(LOOSE)
    try:
        safe, found = exposure(root, "loose.service", max(EXPOSURE.values()))
    finally:
        (root / SYSTEM / "loose.service").unlink()
    assert not safe
    assert found > 9


def test_the_timer(root: Path) -> None:
    """It goes off each night."""
    (when,) = settings((UNITS / "moorage-backup.timer").read_text())["Timer"]["OnCalendar"]
    done = run("systemd-analyze", "calendar", "--iterations=2", when)
    assert done.returncode == 0
    assert len(re.findall(r"02:30:00", done.stdout)) >= 3


def test_the_environment_file_names_settings() -> None:
    """Each variable is one that the server knows."""
    given = environment_of(UNITS / "moorage.env")
    assert len(given) > 3
    assert {*given} <= known_variables()


def test_the_drop_in_for_tls(root: Path) -> None:
    """Its variables are settings; what is read from a credential is one that it loads."""
    service = settings((UNITS / "moorage-tls.conf").read_text())["Service"]
    given = dict(one.split("=", 1) for one in service["Environment"])
    assert {*given} <= known_variables()
    (credential,) = service["LoadCredential"]
    name, path = credential.split(":")
    assert given["MOORAGE_TLS_KEY"] == f"%d/{name}"
    assert f"{path[1:]}" in installed(root)
    assert f"{given['MOORAGE_TLS_CERT'][1:]}" in installed(root)


def test_the_sockets_are_named_after_settings() -> None:
    """The name says which setting a socket replaces, with the default of that setting."""
    main, boskos = (
        settings((UNITS / name).read_text())["Socket"]
        for name in ("moorage.socket", "moorage-boskos.socket")
    )
    assert (main["FileDescriptorName"], main["ListenStream"]) == (["listen"], ["127.0.0.1:8778"])
    assert boskos["FileDescriptorName"] == ["boskos_listen"]
    assert boskos["Service"] == ["moorage.service"]


def test_the_backup(tmp_path: Path) -> None:
    """The command of the unit, in its folder, beside a running server: it keeps the newest."""
    service = settings((UNITS / "moorage-backup.service").read_text())["Service"]
    (command,) = service["ExecStart"]
    assert service["StateDirectory"] == ["moorage moorage-backups"]
    assert service["WorkingDirectory"] == ["%S/moorage"]
    state, backups = tmp_path / "moorage", tmp_path / "moorage-backups"
    state.mkdir()
    backups.mkdir()
    for day in range(1, 15):
        (backups / f"moorage-202601{day:02}T023000Z.sqlite").touch()
    (backups / "notes").touch()
    words = command.replace("%S", str(tmp_path)).replace("${BACKUPS_KEPT}", "14").split()
    assert words[0] == "/opt/moorage/bin/moorage"
    words = [*MOORAGE, *words[1:]]
    with serve(state / "moorage.sqlite"):
        done = subprocess.run(words, cwd=state, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    names = sorted(path.name for path in backups.iterdir())
    assert len(names) == 15
    assert names[0] == "moorage-20260102T023000Z.sqlite"
    newest = backups / names[-2]
    assert newest.stat().st_size > 0
    assert newest.stat().st_mode & 0o077 == 0
    done = subprocess.run(
        [*words[:-4], "--folder", "/nowhere"],
        cwd=state,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "/nowhere is no folder" in done.stderr
