"""The units of `contrib/systemd/`: what they say, and a root into which the guide installs them."""

import os
import re
import shlex
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

from tests.e2e.support.typed import ROOT, steps_of

UNITS = ROOT / "contrib/systemd"
GUIDE = ROOT / "docs/howto/operate.md"
SYSTEM = "etc/systemd/system"
HOST = ("sysinit", "basic", "sockets", "timers", "multi-user", "shutdown", "network-online")
"""The targets of a machine that the units name, or that systemd adds."""


def settings(text: str) -> dict[str, dict[str, list[str]]]:
    """Return the settings of each section; one may be set several times."""
    found: dict[str, dict[str, list[str]]] = {}
    for line in text.replace("\\\n", " ").splitlines():
        if section := re.fullmatch(r"\[(\w+)\]", line):
            found[section[1]] = defaultdict(list)
        elif line and not line.startswith("#"):
            name, equals, value = line.partition("=")
            assert equals, line
            found[[*found][-1]][name].append(value)
    return found


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a program; return what it says."""
    return subprocess.run([*words], capture_output=True, text=True, check=False, cwd=ROOT)


def machine(root: Path) -> Path:
    """Make a root like that of a machine with Moorage, but without its units; return it."""
    units = root / "usr/lib/systemd/system"
    units.mkdir(parents=True)
    for name in HOST:
        (units / f"{name}.target").write_text(f"[Unit]\nDescription={name}\n")
    for folder in ("-", "system"):
        (units / f"{folder}.slice").write_text(f"[Unit]\nDescription={folder}\n")
    for program in ("opt/moorage/bin/moorage", "opt/moorage/moorage.pyz", "usr/bin/python3"):
        path = root / program
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    (root / "bin").mkdir()
    shutil.copy(root / "usr/bin/python3", root / "bin/kill")
    return root


def typed(root: Path, title: str, folder: Path = ROOT) -> list[str]:
    """Type the commands of a section of the guide, for a root; return those that need a systemd.

    `folder`: where they are typed.
    """
    left = []
    for step in steps_of(GUIDE, title):
        words = shlex.split(step.command)
        if words[0] == "install":
            words = [f"{root}{word}" if word.startswith("/") else word for word in words]
        elif words[:2] == ["systemctl", "enable"]:
            words = ["systemctl", f"--root={root}", "enable"]
            words += [word for word in shlex.split(step.command)[2:] if word != "--now"]
        else:
            left.append(step.command)
            continue
        done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=folder)
        assert done.returncode == 0, (words, done.stderr)
    return left


def environment_of(path: Path) -> dict[str, str]:
    """Return what an environment file would set if nothing in it were a comment."""
    lines = (line.lstrip("#") for line in path.read_text().splitlines())
    return {
        name: value
        for name, equals, value in (line.partition("=") for line in lines)
        if equals and re.fullmatch(r"[A-Z_]+", name)
    }


def installed(root: Path) -> dict[str, int]:
    """Return the files below /etc, with their modes."""
    return {
        str(path.relative_to(root)): os.stat(path).st_mode & 0o777
        for path in sorted((root / "etc").rglob("*"))
        if path.is_file() and not path.is_symlink()
    }
