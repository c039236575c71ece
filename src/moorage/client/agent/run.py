"""`moorage agent run` from end to end: one agent per machine, until a signal or the server ends it.

The exit code is 0 after SIGTERM and if the agent is decommissioned, 4 if another machine has the
same id, 1 and 2 if it cannot start.
"""

from __future__ import annotations

import os
from contextlib import ExitStack

from moorage import __version__
from moorage.client.agent.api import AgentServer
from moorage.client.agent.arguments import Words, connector_of, files_of
from moorage.client.agent.backoff import Backoff
from moorage.client.agent.consumers import running
from moorage.client.agent.hugepages import HugePages
from moorage.client.agent.identity import agent_of, boot_of, uuid_of
from moorage.client.agent.kernel_files import KernelFiles
from moorage.client.agent.loop import Loop, StepFunction, with_consumers
from moorage.client.agent.plan import plan_read
from moorage.client.agent.preparation import Preparation
from moorage.client.agent.protocol import Machine, Protocol
from moorage.client.run.clock import instant
from moorage.client.run.exit_codes import FAILED
from moorage.client.run.locks import locked_file
from moorage.client.run.parse import UsageError, labels_of
from moorage.client.run.progress import Progress
from moorage.systemd.notifier import Notifier

LOCK_FILE = "/run/moorage-agent/lock"

REGISTER_SECONDS = (1.0, 60.0)
"""Bounds of the delays before registering again; they are at most the TTL, once it is known."""

PASS_SECONDS = (5.0, 300.0)
"""Bounds of the delays between passes: each may compact the memory of the whole machine."""


def run_agent(words: Words, notices: Progress, files: KernelFiles | None = None) -> int:
    """Run the agent; return the exit code.

    `files`: access to the kernel, if it is not that of the arguments.

    Raises:
        UsageError: the arguments are wrong.
        OSError: the kernel's files or the lock cannot be used.
    """
    if words["reservoir"] is None:
        raise UsageError("no reservoir: set --reservoir hugepages")
    kernel = files_of(words) if files is None else files
    agent, connect = agent_of(words), connector_of(words)
    labels = labels_of(words)
    root = str(uuid_of(words, "root")) if words["root"] else None
    lock = words["lock_file"] or LOCK_FILE
    with ExitStack() as stack:
        os.makedirs(os.path.dirname(os.path.abspath(lock)), mode=0o755, exist_ok=True)
        try:
            stack.enter_context(locked_file(lock, wait=False))
        except BlockingIOError:
            notices.say(f"another agent runs on this machine: it has locked {lock}")
            return FAILED
        try:
            boot_id, pages = boot_of(kernel), HugePages(kernel)
            if not pages.pools():
                notices.say(f"this machine has no huge pages in {kernel.sys()}")
                return FAILED
        except ValueError as error:
            notices.say(f"cannot read the machine: {error}")
            return FAILED
        machine = _machine(boot_id, root, labels)
        notices.say(f"agent {agent} of {machine.hostname}, boot {boot_id}")
        preparation = Preparation(pages, agent, Backoff(*PASS_SECONDS), instant)
        step: StepFunction = preparation.step
        if words["libvirt_dir"]:
            step = with_consumers(step, lambda: running(words["libvirt_dir"], kernel))
        plan, trouble = plan_read(words["plan"], instant)
        if trouble is not None:
            notices.say(trouble)
        protocol = Protocol(machine, Backoff(*REGISTER_SECONDS), plan)
        notifier = Notifier(os.environ, notices.say)
        return Loop(protocol, AgentServer(connect, agent).send, step, notices, notifier).run()


def _machine(boot_id: str, root: str | None, labels: tuple[tuple[str, str], ...]) -> Machine:
    system = os.uname()
    return Machine(boot_id, system.nodename, system.release, __version__, root, labels)
