"""Airflow's own API server on a free port: `python -m tests.orchestrators.runs.airflow_server`."""

import socket
import sys

import uvicorn
from airflow.api_fastapi.app import create_app

if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as listening:
        # Connections wait in the socket until the server accepts them.
        port = listening.getsockname()[1]
        sys.stdout.write(f"airflow: serving http://127.0.0.1:{port}\n")
        sys.stdout.flush()
        uvicorn.Server(uvicorn.Config(create_app(), log_level="warning")).run([listening])
