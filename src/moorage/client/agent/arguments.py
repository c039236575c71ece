"""Interprets the arguments that `moorage agent run` and `moorage agent wait` have in common."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from moorage.client.agent.kernel_files import PROCFS, SYSFS, KernelFiles
from moorage.client.run.parse import UsageError
from moorage.client.targets import UNSET, target_of
from moorage.client.transport import Transport

Words = Mapping[str, Any]

ANSWER_BYTES_MAX = 1 << 20
"""Bytes in an answer to an agent; orders for as many parts as a machine may have are shorter. The
agent has little memory: a wrong server must not make it use more."""


def connector_of(words: Words) -> Callable[[], Transport]:
    """Return a function that prepares requests to the server, with the token as it is then.

    It raises OSError, ValueError: the token cannot be read any more.

    Raises UsageError.
    """

    def connect() -> Transport:
        target = target_of(words, os.environ)
        if target.url is None:
            raise ValueError(UNSET)
        return target.transport(answer_bytes_max=ANSWER_BYTES_MAX)

    try:
        connect()
    except (OSError, ValueError) as error:
        raise UsageError(str(error)) from None
    return connect


def files_of(words: Words) -> KernelFiles:
    """Return access to the kernel's files, below other roots if given."""
    return KernelFiles(words.get("sysfs") or SYSFS, words.get("procfs") or PROCFS)
