"""Ironic's refusals, word for word."""

from typing import Any


class Refused(Exception):
    """A request is refused: with a status, and with the members of the error."""

    def __init__(self, status: int, members: dict[str, Any], **headers: str) -> None:
        super().__init__(status, members)
        self.status, self.members, self.headers = status, members, headers


def fault(status: int, text: str) -> Refused:
    """Return an error of Ironic itself."""
    code = "Client" if status < 500 else "Server"
    return Refused(status, {"faultcode": code, "faultstring": text, "debuginfo": None})


def routing(status: int, title: str, description: str = "", **headers: str) -> Refused:
    """Return an error of the web framework, for instance of an unknown path."""
    members = {"code": status, "title": title, "description": description}
    return Refused(status, members, **headers)


def not_found(node: str) -> Refused:
    """There is no such node."""
    return fault(404, f"Node {node} could not be found.")


def locked(node: str, host: str) -> Refused:
    """Something works on the node."""
    return fault(
        409,
        f"Node {node} is locked by host {host}, please retry after the current operation is "
        "completed.",
    )


def wrong_state(action: str, node: str, state: str | None) -> Refused:
    """The state of the node does not allow the verb, or there is no such verb."""
    return fault(
        400,
        f'The requested action "{action}" can not be performed on node "{node}" while it is in '
        f'state "{state}".',
    )


def in_maintenance(node: str) -> Refused:
    """A node in maintenance is not deployed."""
    return fault(
        400,
        f"The provisioning operation can't be performed on node {node} because it's in "
        "maintenance mode.",
    )


def limit_reached() -> Refused:
    """As many nodes are being deployed as Ironic's own limit allows."""
    return fault(
        503,
        "Unable to process request at this time. The concurrent action limit for provisioning has "
        "been reached. Please contact your administrator and try again later.",
    )


def no_worker() -> Refused:
    """All threads of the conductor are busy."""
    return fault(503, "Requested action cannot be performed due to lack of free conductor workers.")


def of_status(status: int) -> Refused:
    """Return an error for faults on demand, of which nobody can tell what has begun."""
    if status == 503:
        return fault(status, "Resource temporarily unavailable, please retry.")
    return fault(status, "Timed out waiting for a reply to message ID 0")


def not_acceptable() -> Refused:
    """The version of the request does not have it."""
    return fault(406, "Request not acceptable.")


def needed(name: str) -> Refused:
    """A parameter is missing."""
    return fault(400, f"Missing mandatory parameter: {name}")
