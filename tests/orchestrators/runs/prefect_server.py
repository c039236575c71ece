"""Prefect's own API server on a free port: `python -m tests.orchestrators.runs.prefect_server`."""

import socket
import sys

import uvicorn
from prefect.server.api.server import create_app

if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as listening:
        # Connections wait in the socket until the server accepts them.
        port = listening.getsockname()[1]
        sys.stdout.write(f"prefect: serving http://127.0.0.1:{port}/api\n")
        sys.stdout.flush()
        uvicorn.Server(uvicorn.Config(create_app(), log_level="warning")).run([listening])
