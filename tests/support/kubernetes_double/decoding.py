"""Reads the objects in requests: what kind they say they are, unknown fields, defaults."""

import copy
import json
import re
from typing import Any

from tests.support.kubernetes_double import schemas, status
from tests.support.kubernetes_double.kinds import CORE_EVENTS, EVENTS, NAMESPACES, Kind
from tests.support.kubernetes_double.requests import Received
from tests.support.kubernetes_double.status import Cause
from tests.support.kubernetes_double.storage import Object

SUMMARY = 30
"""Characters of a body that is not recognized in the message about it."""
SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
NAME = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    f"for validation is '{SUBDOMAIN}')"
)
OPTIONS = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions"}


def is_dry_run(request: Received) -> bool:
    """Return whether nothing is to be stored. Raises Refused."""
    wanted = request.query.get("dryRun")
    if wanted not in (None, "All"):
        text = f'Unsupported value: {json.dumps([wanted])}: supported values: "All"'
        kind = OPTIONS.get(request.method, "DeleteOptions")
        raise status.wrong_option(kind, "dryRun", text, "FieldValueNotSupported")
    return wanted is not None


def decoded(request: Received) -> Object:
    """Return the object in the body, as one of the resource of the path. Raises Refused."""
    found = stated(request)
    coerced(request, found)
    check_place(request, found)
    return found


def applied(request: Received) -> Object:
    """Return what is applied: a part of an object, without defaults. Raises Refused."""
    found, target = stated(request), request.target
    if unknown := schemas.pruned(copy.deepcopy(found), target.kind.schema):
        kind = target.kind
        named = f"{found['metadata'].get('namespace', '')}/{target.name}"
        shown = f"{named}; {kind.api_version}, Kind={kind.kind}"
        text = f"failed to create typed patch object ({shown}): "
        # Of several fields the server names any.
        raise status.Refused(500, f"{text}.{unknown[0]}: field not declared in schema", "")
    return found


def stated(request: Received) -> Object:
    """Return the object in the body if it is of the right kind. Raises Refused."""
    found, kind = request.document, request.target.kind
    if not isinstance(found, dict):
        raise status.bad_request("the body is not an object")
    found = json.loads(json.dumps(found, default=str))
    found = {**_identity(request, kind, found), **found}
    if (version := found["apiVersion"]) != kind.api_version:
        text = f"the API version in the data ({version}) does not match the expected API version "
        raise status.bad_request(f"{text}({kind.api_version})")
    if found["kind"] != kind.kind and not kind.custom:
        text = f"{found['kind']} in version {kind.version!r} cannot be handled as a {kind.kind}"
        raise status.bad_request(text)
    metadata = found.get("metadata") or {}
    found["metadata"] = {name: one for name, one in metadata.items() if one != ""}
    return found


def _identity(request: Received, kind: Kind, found: Object) -> Object:
    """Return what is added to an object that does not say what it is. Raises Refused."""
    if not kind.custom:
        return {"apiVersion": kind.api_version, "kind": kind.kind}
    if not found.get("kind"):
        body = request.body.decode(errors="replace")
        summary = body if len(body) <= SUMMARY else f"{body[:SUMMARY]} ..."
        text = f"the object provided is unrecognized (must be of type {kind.kind}): "
        raise status.bad_request(f"{text}Object 'Kind' is missing in '{body}' ({summary})")
    return {"apiVersion": ""}


def coerced(request: Received, found: Object) -> None:
    """Remove what the schema does not know, and add its defaults, in place. Raises Refused."""
    kind = request.target.kind
    if not kind.schema:
        return
    found["metadata"] = dict(found.get("metadata") or {})
    unknown = [f'unknown field "{name}"' for name in sorted(schemas.pruned(found, kind.schema))]
    schemas.set_defaults(found, kind.schema)
    match request.query.get("fieldValidation") or "Warn":
        case "Strict" if unknown:
            why = f"strict decoding error: {', '.join(unknown)}"
            if request.method == "PATCH":
                shown = json.dumps(json.dumps(found, separators=(",", ":")))
                cause = Cause("FieldValueInvalid", f"Invalid value: {shown}: {why}", "patch")
                raise status.invalid("", "", "", [cause])
            text = f'{found["kind"]} in version "{kind.version}" cannot be handled as a '
            raise status.bad_request(f"{text}{kind.kind}: {why}")
        case "Warn":
            request.warnings.extend(unknown)


def check_place(request: Received, found: Object) -> None:
    """Refuse an object of another name or namespace than the path says. Raises Refused."""
    target, metadata = request.target, found["metadata"]
    if target.kind.namespaced and metadata.setdefault("namespace", target.namespace) != (
        target.namespace
    ):
        text = "the namespace of the provided object does not match the namespace sent on the "
        raise status.bad_request(text + "request")
    if request.method != "POST" and metadata.get("name") != target.name:
        if not metadata.get("name"):
            text = f"the name of the object ({target.name} based on URL) was undeterminable: "
            raise status.bad_request(text + "name must be provided")
        text = f"the name of the object ({metadata['name']}) does not match the name on the URL "
        raise status.bad_request(f"{text}({target.name})")


def problems(kind: Kind, new: Object, old: Object | None, part: str) -> list[Cause]:
    """Return what is wrong with an object that is to be stored."""
    metadata, before = new["metadata"], old or {}
    if not kind.custom:
        changes = _changes(metadata, old["metadata"]) if old else []
        return [*changes, *_event_problems(kind, new)]
    for name, wanted in (("kind", kind.kind), ("apiVersion", kind.api_version)):
        if new[name] != wanted:
            text = f'Invalid value: "{new[name]}": must be {wanted}'
            return [Cause("FieldValueInvalid", text, name)]
    # Changes of metadata are looked at twice: in general, and by the resource.
    found = _changes(metadata, old["metadata"]) * 2 if old else _name_problems(metadata)
    schema = kind.schema
    if part == "status" and "status" in new:
        own = schema.get("properties", {}).get("status", {})
        return [*found, *schemas.problems(new["status"], own, part, "", before.get(part))]
    if part != "status":
        known: Any = schemas.MISSING if old is None else old
        found += schemas.problems(new, schema, "", "", known)
    return found


def _changes(metadata: Object, held: Object) -> list[Cause]:
    """Return the wrong changes of metadata."""
    found = []
    for name in ("uid", "deletionTimestamp"):
        if metadata.get(name) != held.get(name):
            text = f"Invalid value: {json.dumps(metadata[name])}: field is immutable"
            found.append(Cause("FieldValueInvalid", text, f"metadata.{name}"))
    new = sorted({*(metadata.get("finalizers") or [])} - {*(held.get("finalizers") or [])})
    if new and held.get("deletionTimestamp"):
        text = "Forbidden: no new finalizers can be added if the object is being deleted, found "
        text += f"new finalizers []string{{{', '.join(map(json.dumps, new))}}}"
        found.append(Cause("FieldValueForbidden", text, "metadata.finalizers"))
    return found


def _event_problems(kind: Kind, new: Object) -> list[Cause]:
    """Return what is wrong with an event: it is in the namespace of what it is about."""
    field = "involvedObject" if kind is CORE_EVENTS else "regarding"
    if kind not in (CORE_EVENTS, EVENTS):
        return []
    named = (new.get(field) or {}).get("namespace", "")
    if named == new["metadata"].get("namespace", "") or not named:
        return []
    text = f"Invalid value: {json.dumps(named)}: does not match event.namespace"
    return [Cause("FieldValueInvalid", text, "involvedObject.namespace")]


def completed(kind: Kind, found: Object) -> None:
    """Add what the server itself adds to a new object of its own kinds, in place."""
    if kind is CORE_EVENTS:
        found |= {"eventTime": None, "reportingInstance": "", **found}
        found.setdefault("reportingComponent", "")
    if kind is NAMESPACES:
        name = found["metadata"]["name"]
        labels = found["metadata"].get("labels") or {}
        found["metadata"]["labels"] = {**labels, "kubernetes.io/metadata.name": name}
        found |= {"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}


def _name_problems(metadata: Object) -> list[Cause]:
    if not (name := metadata.get("name", "")):
        text = "Required value: name or generateName is required"
        return [Cause("FieldValueRequired", text, "metadata.name")]
    if re.fullmatch(SUBDOMAIN, name):
        return []
    text = f"Invalid value: {json.dumps(name)}: {NAME}"
    return [Cause("FieldValueInvalid", text, "metadata.name")]


def finalizer_warnings(new: Object, old: Object | None) -> list[str]:
    """Return the warnings about new finalizers of a custom resource."""
    held = ((old or {}).get("metadata") or {}).get("finalizers") or []
    return [
        f'metadata.finalizers: "{name}": prefer a domain-qualified finalizer name including a path '
        "(/) to avoid accidental conflicts with other finalizer writers"
        for name in sorted({*(new["metadata"].get("finalizers") or [])} - {*held})
        if "/" not in name and "." in name
    ]
