"""Reads a review of a write and answers it (`AdmissionReview` of admission.k8s.io/v1)."""

import base64
import json
from collections.abc import Mapping
from typing import Any

from moorage.integrations.metal3.admission.decision import pauses
from moorage.integrations.metal3.hosts import OWN, PAUSED, annotations_of

API_VERSION = "admission.k8s.io/v1"
KIND = "AdmissionReview"


class ReviewError(ValueError):
    """This is not a review that can be answered; the message says what is wrong."""


def answered(review: Any, governor: str) -> dict[str, Any]:
    """Return the answer to a review. Raises ReviewError.

    `governor` is the user name of the governor, which is never held back.
    """
    if not isinstance(review, Mapping):
        raise ReviewError("the body must be a JSON object")
    if review.get("apiVersion") != API_VERSION or review.get("kind") != KIND:
        raise ReviewError(f"the body must be an {KIND} of {API_VERSION}")
    request = _object(review, "request", "the review")
    uid = request.get("uid")
    if not (isinstance(uid, str) and uid):
        raise ReviewError("request.uid must be a string")
    response: dict[str, Any] = {"uid": uid, "allowed": True}
    if (new := _paused(request, governor)) is not None:
        patch = base64.b64encode(json.dumps(_patch(new)).encode()).decode()
        response |= {"patchType": "JSONPatch", "patch": patch}
    return {"apiVersion": API_VERSION, "kind": KIND, "response": response}


def _paused(request: Mapping[str, Any], governor: str) -> Mapping[str, Any] | None:
    """Return the host that is to be paused; None: none is. Raises ReviewError."""
    operation = request.get("operation")
    if operation not in ("CREATE", "UPDATE") or request.get("subResource"):
        return None
    kind = _object(request, "kind", "request")
    if (kind.get("group"), kind.get("kind")) != ("metal3.io", "BareMetalHost"):
        return None
    new = _host(request, "object")
    old = _host(request, "oldObject") if operation == "UPDATE" else None
    user = _object(request, "userInfo", "request").get("username")
    if not isinstance(user, str):
        raise ReviewError("request.userInfo.username must be a string")
    options = request.get("options")
    manager = options.get("fieldManager") if isinstance(options, Mapping) else None
    return new if pauses(new, old, user, governor, str(manager or "")) else None


def _patch(host: Mapping[str, Any]) -> list[dict[str, Any]]:
    if not annotations_of(host):
        return [{"op": "add", "path": "/metadata/annotations", "value": {PAUSED: OWN}}]
    key = PAUSED.replace("~", "~0").replace("/", "~1")
    return [{"op": "add", "path": f"/metadata/annotations/{key}", "value": OWN}]


def _host(request: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    host = _object(request, name, "request")
    _object(host, "metadata", f"request.{name}")
    return host


def _object(parent: Mapping[str, Any], name: str, of: str) -> Mapping[str, Any]:
    found = parent.get(name)
    if not isinstance(found, Mapping):
        raise ReviewError(f"{of} needs an object '{name}'")
    return found
