"""The ids of the agent and of the boot, and what runs on the machine."""

import os
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from moorage.client.agent.consumers import running
from moorage.client.agent.identity import agent_of, boot_of
from moorage.client.agent.kernel_files import KernelFiles
from moorage.client.run.parse import UsageError

GIVEN = "5d4c1b1e-7f0a-4a63-9f0e-2f7c6b1d8a55"
ROOT = "6d4c1b1e-7f0a-4a63-9f0e-2f7c6b1d8a55"


def test_the_id_of_an_agent(tmp_path: Path) -> None:
    """The given one, else that of the root, else the same for the same machine."""
    file = tmp_path / "machine-id"
    file.write_text("3d1219c7c4c5404aaa1f6d2a48adfda4\n")
    words = {"agent_id": GIVEN, "root": ROOT}
    assert agent_of(words, str(file)) == UUID(GIVEN)
    assert agent_of({**words, "agent_id": None}, str(file)) == UUID(ROOT)
    derived = agent_of({"agent_id": None, "root": None}, str(file))
    assert str(derived) == "c04e9213-5500-5836-8d2a-ce36788273d7"
    assert "3d1219c7" not in str(derived)
    file.write_text("4d1219c7c4c5404aaa1f6d2a48adfda4\n")
    assert agent_of({}, str(file)) != derived


@pytest.mark.parametrize("text", [None, "", "uninitialized\n", "3D1219C7"])
def test_a_machine_without_an_id(tmp_path: Path, text: str | None) -> None:
    """An image that is not set up yet must not share one id with all its copies."""
    file = tmp_path / "machine-id"
    if text is not None:
        file.write_text(text)
    with pytest.raises(UsageError, match="set --agent-id"):
        agent_of({"agent_id": None, "root": None}, str(file))


def test_the_boot_of_this_machine() -> None:
    """The kernel has a new one for each boot."""
    assert boot_of(KernelFiles()) == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


class Libvirt:
    """libvirt's folder, and a procfs with some processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "qemu"
        self.folder.mkdir()
        self.files = KernelFiles(str(folder / "sys"), str(folder / "proc"))
        (folder / "proc/4242").mkdir(parents=True)

    def add(self, name: str, uuid: str, pid: int = 4242) -> None:
        """Add a domain as libvirt 10 writes it."""
        (self.folder / f"{name}.xml").write_text(
            "<!--\nWARNING: THIS IS AN AUTO-GENERATED FILE.\n-->\n"
            f"<domstatus state='running' reason='booted' pid='{pid}'>\n"
            "  <monitor path='/var/lib/libvirt/qemu/monitor.sock' type='unix'/>\n"
            f"  <domain type='kvm' id='12'>\n    <name>{name}</name>\n    <uuid>{uuid}</uuid>\n"
            "    <sysinfo type='smbios'><system><entry name='uuid'>x</entry></system></sysinfo>\n"
            "  </domain>\n</domstatus>\n"
        )
        (self.folder / f"{name}.pid").write_text(str(pid))

    def running(self) -> tuple[str, ...] | None:
        """Return what runs."""
        return running(str(self.folder), self.files)


def test_running_domains(tmp_path: Path) -> None:
    """Domains with a process run; a file that was left behind does not count."""
    libvirt = Libvirt(tmp_path)
    assert libvirt.running() == ()
    first, second = sorted(str(uuid4()) for _ in range(2))
    libvirt.add("b", second)
    libvirt.add("a", first)
    libvirt.add("crashed", str(uuid4()), pid=4343)
    libvirt.add("starting", str(uuid4()), pid=0)
    os.mkdir(libvirt.folder / "channel")
    assert libvirt.running() == (first, second)


@pytest.mark.parametrize("text", ["", "<domain/>", "<domstatus pid='1'/>", "<domstatus"])
def test_a_folder_that_is_not_understood(tmp_path: Path, text: str) -> None:
    """Nothing is known then: an empty list would say that nothing runs."""
    libvirt = Libvirt(tmp_path)
    libvirt.add("a", GIVEN)
    (libvirt.folder / "strange.xml").write_text(text)
    assert libvirt.running() is None


def test_a_missing_folder(tmp_path: Path) -> None:
    """Libvirt may not have been started yet."""
    assert running(str(tmp_path / "nowhere"), KernelFiles()) is None
