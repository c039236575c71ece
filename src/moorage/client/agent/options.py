"""The table of the options of `moorage agent run` and `moorage agent wait`."""

from __future__ import annotations

from moorage.client.run.options import SERVER, Option

AGENT = (
    Option(
        "--agent-id",
        "UUID of the agent; by default --root, or else derived from /etc/machine-id.",
        "UUID",
    ),
    Option(
        "--root",
        "Existing provider of this machine, such as Nova's compute node; by default the server"
        " creates one.",
        "UUID",
    ),
    Option("--procfs", "Where procfs is mounted; /proc by default.", "DIR"),
    *(option for option in SERVER if option.name != "--unlimited-without-server"),
)
RUN = (
    Option("--reservoir", "Kind of memory to prepare and report.", choices=("hugepages",)),
    Option("--label", "Label that is shown with the agent.", "NAME=VALUE", many=True),
    Option(
        "--libvirt-dir",
        "Folder with libvirt's status files, whose domains are reported as running consumers,"
        " usually /run/libvirt/qemu; not reported by default.",
        "DIR",
    ),
    Option(
        "--lock-file",
        "File that is locked while the agent runs, so that only one runs; /run/moorage-agent/lock"
        " by default.",
        "FILE",
    ),
    Option(
        "--plan",
        "JSON file with a reshape plan for the providers of this machine, which the server carries"
        " out once in each boot.",
        "FILE",
    ),
    Option("--sysfs", "Where sysfs is mounted; /sys by default.", "DIR"),
    *AGENT,
)
WAIT = (
    Option("--consumer", "UUID of the consumer that wants to start.", "UUID"),
    Option("--timeout", "Longest wait; 2m by default.", "TIME"),
    *AGENT,
)
COMMANDS = {
    "agent run": (RUN, "Prepare the huge pages of this machine and report what it really has."),
    "agent wait": (
        WAIT,
        "Wait until a consumer may start on this machine; exit code 0 only if it may.",
    ),
}
"""The commands, with their options and their help texts."""

EXAMPLES = {
    "agent run": (
        "moorage agent run --reservoir hugepages --url https://moorage:8778 --token-file token",
    ),
    "agent wait": (
        "moorage agent wait --consumer 5d4c1b1e-7f0a-4a63-9f0e-2f7c6b1d8a55 --timeout 2m",
    ),
}
"""Command lines for the help of each command."""
