"""Dagster's own webserver on a free port: `python -m tests.orchestrators.runs.dagster_server`."""

import socket
import sys

import uvicorn
from dagster import DagsterInstance
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import ModuleTarget
from dagster_webserver.app import create_app_from_workspace_process_context

MODULE = "tests.orchestrators.runs.with_dagster"

if __name__ == "__main__":
    target = ModuleTarget(MODULE, None, ".", MODULE)
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        DagsterInstance.get() as instance,
        WorkspaceProcessContext(instance, target) as context,
    ):
        # Connections wait in the socket until the server accepts them.
        port = listening.getsockname()[1]
        sys.stdout.write(f"dagster: serving http://127.0.0.1:{port}\n")
        sys.stdout.flush()
        app = create_app_from_workspace_process_context(context)
        uvicorn.Server(uvicorn.Config(app, log_level="warning")).run([listening])
