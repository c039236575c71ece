"""The hook of docs/howto/huge-pages.md, called as libvirt calls it: it fails closed."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.cli.command import write_private
from tests.client.single import BARE, ROOT, SECONDS, built
from tests.e2e.support.machine import AGENT, Machine

PAGE = (ROOT / "docs/howto/huge-pages.md").read_text()
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
PAGES = 100
"""What each guest needs, and what is there."""

DOMAIN = """\
<domain type='kvm'>
  <name>instance-00000001</name>
  <uuid>{uuid}</uuid>
  <metadata><owner><uuid>0b1b0f5c-0000-4000-8000-000000000000</uuid></owner></metadata>
  <sysinfo type='smbios'><system><entry name='uuid'>{uuid}</entry></system></sysinfo>
</domain>
"""


class Hook:
    """The documented script in a file, with the addresses of this run."""

    def __init__(self, folder: Path, machine: Machine, addition: str = "") -> None:
        (text,) = re.findall(r"(?m)^    #!/bin/sh\n(?:    .*\n)+", PAGE)
        script = re.sub(r"(?m)^    ", "", text)
        token = folder / "agent.token"
        write_private(token, machine.agent)
        for shown, real in {
            "/opt/moorage/moorage.pyz": str(built()),
            "https://moorage.example.org:8778": machine.server.url,
            "/etc/moorage/agent.token": str(token),
            AGENT: AGENT,
            "--timeout 2m": "--timeout 1s",
            "\nuuid=": f"\n{addition}\nuuid=",
        }.items():
            assert script.count(shown) == 1, shown
            script = script.replace(shown, real)
        self._file = folder / "qemu"
        self._file.write_text(script)
        self._file.chmod(0o755)

    def call(self, guest: str, operation: str = "prepare", name: str = "instance-00000001") -> int:
        """Call it for a guest; return its exit code."""
        return self.given(DOMAIN.format(uuid=guest), operation, name)

    def given(self, domain: str, operation: str, name: str) -> int:
        """Call it with the description of a domain; return its exit code."""
        return subprocess.run(
            [str(self._file), name, operation, "begin", "-"],
            env={**BARE, "PATH": f"{Path(sys.executable).parent}:{os.defpath}"},
            input=domain,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            timeout=SECONDS,
            check=False,
        ).returncode


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """Provide a machine that is ready in the real boot, and has pages for one guest."""
    machine = Machine(tmp_path, "--no-access-log")
    with machine.server:
        machine.boot = BOOT_ID.read_text().strip()
        machine.create()
        assert machine.register()[0] == 200
        machine.desired(2 * PAGES)
        assert machine.report(1, 2 * PAGES)[0] == 200
        yield machine


def test_the_hook_fails_closed(machine: Machine, tmp_path: Path) -> None:
    """Only a guest that the server permits starts; without a server, none does."""
    hook = Hook(tmp_path, machine)
    guests = [machine.claim(PAGES), machine.claim(PAGES)]
    assert [status for _, status in guests] == [204, 204]
    (first, _), (second, _) = guests
    assert [hook.call(first), hook.call(second)] == [0, 0]
    assert machine.report(2, PAGES)[0] == 200
    assert [hook.call(first), hook.call(second)] == [0, 3]
    assert hook.call(str(uuid4())) == 4, "it holds nothing here"
    assert hook.given("<domain/>", "prepare", "broken") == 2
    assert hook.call(second, "release") == 0, "guests can always end"
    machine.server.stop()
    assert hook.call(first) == 5


def test_domains_can_be_excluded(machine: Machine, tmp_path: Path) -> None:
    """With the documented line, domains with certain names start without a place."""
    line = "case $1 in infra-*) exit 0 ;; esac"
    assert PAGE.count(f"\n    {line}\n") == 1
    hook = Hook(tmp_path, machine, line)
    unknown = str(uuid4())
    assert hook.call(unknown, name="infra-dns") == 0
    assert hook.call(unknown) == 4
