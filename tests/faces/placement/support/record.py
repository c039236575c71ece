"""Records the responses of OpenStack Placement to each refused request.

Run it as `python -m tests.faces.placement.support.record`.

It needs the environment with Placement (`make .venv-conformance/stamp`) and writes `refusals.json`,
which the tests read. Objects that refused requests leave behind are removed.
"""

import http.client
import json
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from tests.compare.sides import original
from tests.faces.placement.support.refusals import (
    RECORDED,
    ROLES,
    SETUP,
    Request,
    all_requests,
    recorded_form,
)

FORGET = "/_original/orphans"


def send(connection: http.client.HTTPConnection, ask: Request) -> tuple[int, bytes]:
    """Send one request; return status and body of the response."""
    body = ask.body if isinstance(ask.body, bytes) else json.dumps(ask.body).encode()
    headers = {
        "x-auth-token": "admin",
        "x-roles": ROLES,
        "openstack-api-version": f"placement 1.{ask.version}",
    }
    if ask.body is not None:
        headers["content-type"] = "application/json"
    connection.request(ask.method, ask.target, None if ask.body is None else body, headers)
    answer = connection.getresponse()
    return answer.status, answer.read()


def main() -> None:
    """Write the file."""
    with tempfile.TemporaryDirectory() as folder, original(Path(folder) / "original") as server:
        connection = http.client.HTTPConnection(urlsplit(server.url).netloc)
        for ask in SETUP:
            status, body = send(connection, ask)
            assert status < 300, (ask, body)
        answers = []
        for ask in all_requests():
            answers.append(recorded_form(*send(connection, ask)))
            send(connection, Request("POST", FORGET))
    lines = ",\n".join(json.dumps(answer) for answer in answers)
    RECORDED.write_text(f"[\n{lines}\n]\n")
    sys.stdout.write(f"{len(answers)} answers in {RECORDED}\n")


if __name__ == "__main__":
    main()
