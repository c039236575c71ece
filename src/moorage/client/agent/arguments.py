"""Interprets the arguments that `moorage agent run` and `moorage agent wait` have in common."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from moorage.client.agent.kernel_files import PROCFS, SYSFS, KernelFiles
from moorage.client.run.parse import URL_VARIABLE, UsageError, token_named
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
    url = words["url"] or os.environ.get(URL_VARIABLE)
    if not url:
        raise UsageError("no server is set: set MOORAGE_URL, or use --url")

    def connect() -> Transport:
        return Transport(
            url,
            token_named(words),
            certificate=words["certificate"],
            answer_bytes_max=ANSWER_BYTES_MAX,
        )

    try:
        connect()
    except (OSError, ValueError) as error:
        raise UsageError(str(error)) from None
    return connect


def files_of(words: Words) -> KernelFiles:
    """Return access to the kernel's files, below other roots if given."""
    return KernelFiles(words.get("sysfs") or SYSFS, words.get("procfs") or PROCFS)
