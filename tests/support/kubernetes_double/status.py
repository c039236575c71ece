"""Kubernetes' refusals: a status code with a body of kind Status, word for word."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

INITIALIZING = "storage is (re)initializing"
"""The message of 429 while a server has started, and has not read the objects of a resource."""

REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    410: "Expired",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class NotServed(Exception):
    """There is no such group, no such custom resource, or no such path: the body is no JSON."""

    text = "404 page not found\n"


@dataclass(frozen=True)
class Cause:
    """What is wrong with a field."""

    reason: str
    message: str
    field: str

    @property
    def shown(self) -> str:
        """The cause in the message of a refusal."""
        return f"{self.field}: {self.message}"


class Refused(Exception):
    """A request is refused: with a status code and the body that says why."""

    def __init__(self, code: int, message: str, reason: str | None = None, **details: Any) -> None:
        super().__init__(code, message)
        self.code = code
        self.body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": REASONS[code] if reason is None else reason,
            "code": code,
        }
        if not self.body["reason"]:
            del self.body["reason"]
        if shown := {name: one for name, one in details.items() if one}:
            self.body["details"] = shown
        elif details:
            self.body["details"] = {}


def not_found(group: str, plural: str, name: str) -> Refused:
    """There is no such object."""
    text = f'{qualified(group, plural)} "{name}" not found'
    return Refused(404, text, name=name, group=group, kind=plural)


def unknown_path() -> Refused:
    """The server's own group has no such resource, or no such part of it."""
    return Refused(404, "the server could not find the requested resource", kind="")


def not_supported(group: str, plural: str, verb: str) -> Refused:
    """The resource has no such verb."""
    text = f'{verb} is not supported on resources of kind "{qualified(group, plural)}"'
    return Refused(405, text, group=group, kind=plural)


def exists(group: str, plural: str, name: str) -> Refused:
    """An object of that name is there already."""
    text = f'{qualified(group, plural)} "{name}" already exists'
    return Refused(409, text, "AlreadyExists", name=name, group=group, kind=plural)


def conflict(group: str, plural: str, name: str, why: str = "") -> Refused:
    """The object is not the one that the request was made for."""
    why = why or (
        "the object has been modified; please apply your changes to the latest version and try "
        "again"
    )
    text = f'Operation cannot be fulfilled on {qualified(group, plural)} "{name}": {why}'
    return Refused(409, text, name=name, group=group, kind=plural)


def invalid(group: str, kind: str, name: str, causes: Iterable[Cause]) -> Refused:
    """Fields have values that are not allowed."""
    found = [*causes]
    shown = [*dict.fromkeys(cause.shown for cause in found)]
    text = shown[0] if len(shown) == 1 else f"[{', '.join(shown)}]"
    text = f'{qualified(group, kind)} "{name}" is invalid: {text}'
    listed = [vars(cause) for cause in found]
    return Refused(422, text, name=name, group=group, kind=kind, causes=listed)


def wrong_option(
    kind: str, field: str, message: str, reason: str = "FieldValueForbidden"
) -> Refused:
    """An option of a request is not allowed."""
    return invalid("meta.k8s.io", kind, "", [Cause(reason, message, field)])


def expired(wanted: int, oldest: int) -> Refused:
    """The history that the request needs is gone."""
    return Refused(410, f"too old resource version: {wanted} ({oldest})")


def too_large(wanted: int, newest: int) -> Refused:
    """The state that the request needs has not been reached."""
    text = f"Timeout: Too large resource version: {wanted}, current: {newest}"
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    return Refused(504, text, causes=causes, retryAfterSeconds=1)


def bad_request(why: str) -> Refused:
    """The request cannot be understood."""
    return Refused(400, why)


def qualified(group: str, plural: str) -> str:
    """Return the name of a resource with its group."""
    return f"{plural}.{group}" if group else plural
