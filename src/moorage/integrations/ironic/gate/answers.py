"""Answers of the gate itself, in the form of Ironic's errors."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from aiohttp import web
from multidict import CIMultiDict

from moorage.integrations.ironic.nodes import VERSION_MAX_HEADER

VERSIONS = (
    "X-OpenStack-Ironic-API-Minimum-Version",
    VERSION_MAX_HEADER,
)
REQUEST_ID = "Openstack-Request-Id"

CODES = {400: "Client", 409: "Client", 503: "Server"}


@dataclass(frozen=True)
class HttpAnswer:
    """An answer with its whole body; `headers` are end-to-end headers."""

    status: int
    reason: str
    headers: CIMultiDict[str]
    body: bytes


def fault(
    status: int,
    text: str,
    request_id: str,
    versions: Mapping[str, str] | None = None,
    retry_after: int | None = None,
) -> HttpAnswer:
    """Return an error as Ironic would answer it: `error_message` is the JSON text of an object.

    Args:
        status: of the answer.
        text: for people.
        request_id: shown in `Openstack-Request-Id`.
        versions: Ironic's version headers, which clients expect in each answer.
        retry_after: seconds; None: no such header.
    """
    message = {"faultcode": CODES[status], "faultstring": text, "debuginfo": None}
    body = json.dumps({"error_message": json.dumps(message)}).encode()
    headers = CIMultiDict({"Content-Type": "application/json", **(versions or {})})
    headers[REQUEST_ID] = request_id
    if retry_after is not None:
        headers["Retry-After"] = str(retry_after)
    headers["Content-Length"] = str(len(body))
    return HttpAnswer(status, web.Response(status=status).reason or "", headers, body)
