"""`moorage metal3 govern` as a process."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from tests.support import warm
from tests.support.kubeconfig import kubeconfig

TOKEN = "MOORAGE_TOKEN"
FORKED = ("-m", "moorage")
"""Of what Python runs, the only thing that can be forked."""


@asynccontextmanager
async def governing(
    folder: Path,
    cluster: str,
    *options: str,
    token: str | None,
    program: Sequence[str] = FORKED,
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Yield a governor of the cluster with this address, which is killed at the end.

    Args:
        folder: for its file that names the cluster.
        cluster: address of the API server.
        options: of the command.
        token: for Moorage, in its environment; None: there is none.
        program: what Python runs.
    """
    config = folder / "config"
    config.write_text(json.dumps(kubeconfig(cluster, {"token": "any"})))
    words = ("metal3", "govern", "--kubeconfig", str(config), *options)
    environment = {name: value for name, value in os.environ.items() if name != TOKEN}
    if token is not None:
        environment[TOKEN] = token
    if program == FORKED:
        process: asyncio.subprocess.Process = await warm.fork_async(
            words, environment, errors=False
        )
    else:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, *program, *words), env=environment, stdout=asyncio.subprocess.PIPE
        )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
