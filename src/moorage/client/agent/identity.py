"""Which agent and which boot of its machine this is.

By default the id of an agent is that of its root, or derived from `/etc/machine-id`: nothing must
be stored, it survives reboots and upgrades, and the tools that build images already make sure that
no two machines have the same one. A state file would be copied with a disk. A decommissioned id
never returns; then the machine needs a new one, with `--agent-id`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid5

from moorage.client.agent.kernel_files import KernelFiles
from moorage.client.run.parse import UsageError

MACHINE_ID_FILE = "/etc/machine-id"
MACHINE_ID = re.compile("[0-9a-f]{32}")
NAMESPACE = UUID("6c1f3a52-8f0e-4a6b-9d57-3b1f0d2e7a94")
"""Of the ids that are derived from machine ids, which are not to be shown on the network."""

BOOT_ID = "sys/kernel/random/boot_id"


def agent_of(words: Mapping[str, Any], machine_id_file: str = MACHINE_ID_FILE) -> UUID:
    """Return the id of the agent: given, that of the root, or that of this machine.

    Raises UsageError.
    """
    for name in ("agent_id", "root"):
        if words.get(name):
            return uuid_of(words, name)
    try:
        with open(machine_id_file, encoding="ascii", errors="replace") as file:
            text = file.read().strip()
    except OSError as error:
        raise UsageError(f"no agent id: set --agent-id, because {error}") from None
    if not MACHINE_ID.fullmatch(text):
        raise UsageError(
            f"no agent id: set --agent-id, because {machine_id_file} has no id of this machine"
        )
    return uuid5(NAMESPACE, text)


def uuid_of(words: Mapping[str, Any], name: str) -> UUID:
    """Return an argument as a UUID. Raises UsageError."""
    try:
        return UUID(words[name])
    except ValueError:
        option = name.replace("_", "-")
        raise UsageError(f"--{option}: {words[name]!r} is not a UUID") from None


def boot_of(files: KernelFiles) -> str:
    """Return the id of this boot. Raises OSError, ValueError: the kernel does not show it."""
    return str(UUID(files.read(files.proc(BOOT_ID)).strip()))
