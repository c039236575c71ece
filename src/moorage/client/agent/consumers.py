"""Which consumers run on the machine, from libvirt's status files.

libvirt keeps `NAME.xml` in /run/libvirt/qemu for each running domain. The UUID of a domain that
Nova has started is that of its consumer.
"""

from __future__ import annotations

import os
from uuid import UUID
from xml.etree import ElementTree

from moorage.client.agent.kernel_files import KernelFiles


def running(folder: str, files: KernelFiles) -> tuple[str, ...] | None:
    """Return the UUIDs of the running domains, sorted; None: not all of them can be read.

    A file stays behind if a domain ends while libvirt is down, so its process must exist.
    """
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".xml"))
        found = [_running(os.path.join(folder, name), files) for name in names]
    except (OSError, ValueError, ElementTree.ParseError):
        return None
    return tuple(sorted({uuid for uuid in found if uuid is not None}))


def _running(path: str, files: KernelFiles) -> str | None:
    """Return the UUID of a domain; None: it does not run.

    Raises OSError, ValueError, ParseError: this is no status file, or it cannot be read.
    """
    try:
        status = ElementTree.fromstring(files.read(path))
    except FileNotFoundError:
        return None  # the domain has just ended
    if status.tag != "domstatus":
        raise ValueError(f"{path} is not the status of a domain")
    uuid = UUID((status.findtext("domain/uuid") or "").strip())
    pid = int(status.get("pid", ""))
    return str(uuid) if pid > 0 and os.path.exists(files.proc(str(pid))) else None
