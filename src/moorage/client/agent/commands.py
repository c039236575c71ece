"""The commands of `options.COMMANDS`, by name."""

from __future__ import annotations

from moorage.client.agent.arguments import Words
from moorage.client.agent.run import run_agent
from moorage.client.agent.wait import wait_to_start
from moorage.client.run.progress import Progress

_COMMANDS = {"agent run": run_agent, "agent wait": wait_to_start}


def agent_command(name: str, words: Words, notices: Progress) -> int:
    """Execute one of the commands; return its exit code. Raises UsageError, OSError."""
    return _COMMANDS[name](words, notices)
