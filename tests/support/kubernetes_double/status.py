"""Kubernetes' refusals: a status code with a body of kind Status, word for word."""

from typing import Any

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
            "reason": reason or REASONS[code],
            "code": code,
        }
        if details:
            self.body["details"] = details


def not_found(group: str, plural: str, name: str) -> Refused:
    """There is no such object."""
    text = f'{qualified(group, plural)} "{name}" not found'
    return Refused(404, text, name=name, group=group, kind=plural)


def no_such_path() -> Refused:
    """There is no such resource, or no such path at all."""
    return Refused(404, "the server could not find the requested resource")


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


def invalid(group: str, kind: str, name: str, field: str, why: str) -> Refused:
    """A field has a value that is not allowed."""
    causes = [{"reason": "FieldValueInvalid", "message": why, "field": field}]
    text = f'{qualified(group, kind)} "{name}" is invalid: {field}: {why}'
    return Refused(422, text, name=name, group=group, kind=kind, causes=causes)


def expired(wanted: int, oldest: int) -> Refused:
    """The history that the request needs is gone."""
    return Refused(410, f"too old resource version: {wanted} ({oldest})")


def bad_request(why: str) -> Refused:
    """The request cannot be understood."""
    return Refused(400, why)


def qualified(group: str, plural: str) -> str:
    """Return the name of a resource with its group."""
    return f"{plural}.{group}" if group else plural
