"""Creates, changes and removes objects, with the rules of their metadata."""

import json
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from tests.support.kubernetes_double import applying, patches, status
from tests.support.kubernetes_double.admission import Admission, Asked
from tests.support.kubernetes_double.requests import Received, Target
from tests.support.kubernetes_double.storage import Object, Storage

KEPT = ("uid", "creationTimestamp", "name", "namespace", "generation", "deletionTimestamp")
"""Members of metadata that no update changes."""


def _random_uid() -> str:
    return str(uuid4())


class Writes:
    """All writes to a storage. `uid` makes the UIDs of new objects."""

    def __init__(
        self, storage: Storage, admission: Admission, uid: Callable[[], str] = _random_uid
    ) -> None:
        self._storage, self._admission, self._uid = storage, admission, uid

    async def create(self, request: Received) -> Object:
        """Create the object of a request. Raises Refused."""
        target = request.target
        wanted = self._document(request)
        metadata = wanted["metadata"]
        if not metadata.get("name"):
            if not metadata.get("generateName"):
                why = "Required value: name or generateName is required"
                raise status.invalid(target.kind.group, target.kind.kind, "", "metadata.name", why)
            metadata["name"] = metadata["generateName"] + uuid4().hex[:5]
        named = Target(target.kind, target.namespace, metadata["name"], "")
        return await self._create(request, named, wanted)

    async def _create(self, request: Received, target: Target, wanted: Object) -> Object:
        kind = target.kind
        if self._storage.get(target.key) is not None:
            raise status.exists(kind.group, kind.plural, target.name)
        if kind.namespaced and self._storage.get(("", "namespaces", "", target.namespace)) is None:
            raise status.not_found("", "namespaces", target.namespace)
        if wanted["metadata"].get("resourceVersion"):
            raise status.bad_request("resourceVersion should not be set on objects to be created")
        if kind.status and kind.plural != "customresourcedefinitions":
            wanted.pop("status", None)
        is_dry = "dryRun" in request.query
        asked = Asked("CREATE", target, request.user, None, is_dry, request.manager)
        wanted = await self._admission.admit(asked, wanted)
        if self._storage.get(target.key) is not None:
            raise status.exists(kind.group, kind.plural, target.name)
        metadata = wanted["metadata"]
        for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
            metadata.pop(name, None)
        metadata |= {"uid": self._uid(), "creationTimestamp": applying.now()}
        if kind.namespaced:
            metadata["namespace"] = target.namespace
        if kind.generation:
            metadata["generation"] = 1
        if "managedFields" not in metadata:
            metadata["managedFields"] = applying.after_update(None, wanted, request.manager, "")
        if "dryRun" in request.query:
            return wanted
        return self._storage.write(target.key, wanted)

    async def update(self, request: Received) -> Object:
        """Replace an object. Raises Refused."""
        old, wanted = self._old(request), self._document(request)
        kind = request.target.kind
        if kind.conditional and not wanted["metadata"].get("resourceVersion"):
            why = "Invalid value: 0: must be specified for an update"
            field = "metadata.resourceVersion"
            raise status.invalid(kind.group, kind.plural, request.target.name, field, why)
        return await self._replace(request, old, wanted)

    async def patch(self, request: Received) -> Object:
        """Patch an object; a patch that is applied may create it. Raises Refused."""
        if request.content_type == patches.APPLY:
            return await self._apply(request)
        change = {
            patches.MERGE: patches.merged,
            patches.STRATEGIC: patches.merged,
            patches.JSON: patches.json_patched,
        }.get(request.content_type)
        custom = request.target.kind.conditional and request.content_type == patches.STRATEGIC
        if change is None or custom:
            known = ", ".join((patches.JSON, patches.MERGE, patches.APPLY))
            text = (
                f"the body of the request was in an unknown format - accepted media types: {known}"
            )
            raise status.Refused(415, text)
        old = self._old(request)
        if request.document is None:
            raise status.bad_request("the patch is empty")
        return await self._replace(request, old, change(old, request.document), patch=True)

    async def _apply(self, request: Received) -> Object:
        target, wanted, force = request.target, self._document(request), request.flag("force")
        manager = request.query.get("fieldManager", "")
        old = self._storage.get(target.key)
        if old is None:
            empty = {"apiVersion": wanted["apiVersion"], "kind": wanted["kind"], "metadata": {}}
            empty["metadata"] = {"name": target.name}
            new = applying.applied(empty, wanted, manager, force=force)
            return await self._create(request, target, new)
        new = applying.applied(old, wanted, manager, force=force, part=target.part)
        return await self._replace(request, old, new, managed=True)

    async def _replace(
        self,
        request: Received,
        old: Object,
        new: Object,
        *,
        patch: bool = False,
        managed: bool = False,
    ) -> Object:
        target = request.target
        self._check_identity(target, old, new, patch=patch)
        is_dry = "dryRun" in request.query
        asked = Asked("UPDATE", target, request.user, old, is_dry, request.manager)
        new = await self._admission.admit(asked, _with_fixed(target, old, new))
        new = _with_fixed(target, old, new)
        # Admission takes time: somebody may have been faster. The request is carried out again, as
        # the server does, unless it names a version.
        if self._storage.get(target.key) is not old:
            if "resourceVersion" not in _named(request):
                again = self.patch if request.method == "PATCH" else self.update
                return await again(request)
            raise status.conflict(target.kind.group, target.kind.plural, target.name)
        if _unmanaged(new) == _unmanaged(old) and not managed:
            return old
        if not managed:
            fields = applying.after_update(old, new, request.manager, target.part)
            new["metadata"]["managedFields"] = fields
        if target.kind.generation and _counted(new) != _counted(old):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        if managed and _bare(new) == _bare(old):
            return old
        if "dryRun" in request.query:
            return new
        return self._store(target, new)

    def _store(self, target: Target, new: Object) -> Object:
        """Store an object; the last finalizer of one that is being deleted removes it."""
        metadata = new["metadata"]
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            self._storage.write(target.key, new)
            self._storage.write(target.key, None)
            return new
        return self._storage.write(target.key, new)

    def delete(self, request: Received) -> Object:
        """Delete an object, or mark it while it has finalizers. Raises Refused."""
        target, old = request.target, self._old(request)
        options = request.document or {}
        metadata = old["metadata"]
        for name, wanted in (options.get("preconditions") or {}).items():
            if wanted != metadata.get(name):
                shown = "UID" if name == "uid" else "ResourceVersion"
                why = f"Precondition failed: {shown} in precondition: {wanted}, {shown} in object "
                why += f"meta: {metadata.get(name)}"
                raise status.conflict(target.kind.group, target.kind.plural, target.name, why)
        if "dryRun" in request.query or options.get("dryRun"):
            return old
        return self.remove(target, old)

    def remove(self, target: Target, old: Object) -> Object:
        """Delete an object without further checks."""
        metadata = old["metadata"]
        if metadata.get("finalizers"):
            if metadata.get("deletionTimestamp"):
                return old
            marked = {"deletionTimestamp": applying.now(), "deletionGracePeriodSeconds": 0}
            if target.kind.generation:
                marked["generation"] = metadata.get("generation", 0) + 1
            return self._storage.write(target.key, {**old, "metadata": {**metadata, **marked}})
        self._storage.write(target.key, None)
        details = {"name": target.name, "kind": target.kind.plural, "uid": metadata["uid"]}
        if target.kind.group:
            details["group"] = target.kind.group
        done = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
        return {**done, "details": details}

    def _old(self, request: Received) -> Object:
        target = request.target
        old = self._storage.get(target.key)
        if old is None:
            raise status.not_found(target.kind.group, target.kind.plural, target.name)
        return old

    def _document(self, request: Received) -> Object:
        """Return the object in the body, as one of the resource of the path. Raises Refused."""
        kind, found = request.target.kind, request.document
        if not isinstance(found, dict):
            raise status.bad_request("the body is not an object")
        found = json.loads(json.dumps(found, default=str))
        stated = (found.get("apiVersion", kind.api_version), found.get("kind", kind.kind))
        if stated != (kind.api_version, kind.kind):
            text = f"{stated[1]} in version {stated[0]!r} cannot be handled as a {kind.kind}"
            raise status.bad_request(text)
        metadata = found.get("metadata") or {}
        named = metadata.get("namespace") or request.target.namespace
        if kind.namespaced and named != request.target.namespace:
            text = "the namespace of the provided object does not match the namespace sent on the "
            raise status.bad_request(text + "request")
        if request.target.name and metadata.get("name", request.target.name) != request.target.name:
            text = (
                f"the name of the object ({metadata['name']}) does not match the name on the URL "
            )
            raise status.bad_request(f"{text}({request.target.name})")
        found["metadata"] = dict(metadata)
        if request.method == "PUT" or request.content_type == patches.APPLY:
            found["metadata"]["name"] = request.target.name
        return {"apiVersion": kind.api_version, "kind": kind.kind, **found}

    def _check_identity(self, target: Target, old: Object, new: Object, *, patch: bool) -> None:
        group, plural, name = target.kind.group, target.kind.plural, target.name
        held, sent = old["metadata"], new["metadata"]
        if sent.get("resourceVersion") not in (None, "", held["resourceVersion"]):
            raise status.conflict(group, plural, name)
        if sent.get("uid") not in (None, "", held["uid"]):
            why = f"Precondition failed: UID in precondition: {sent['uid']}, UID in object meta: "
            raise status.conflict(group, plural, name, why + held["uid"])
        if patch and sent.get("name") != held["name"]:
            raise status.invalid(group, plural, name, "metadata.name", "field is immutable")


def _named(request: Received) -> dict[str, Any]:
    """Return the metadata that a patch names."""
    document = request.document
    return (document.get("metadata") or {}) if isinstance(document, dict) else {}


def _with_fixed(target: Target, old: Object, new: Object) -> Object:
    """Return what an update may change: either the status or everything else."""
    if target.part == "status":
        found = {**old, "status": new.get("status", {})}
        managed = new["metadata"].get("managedFields")
        return {**found, "metadata": {**old["metadata"], "managedFields": managed}}
    found = dict(new)
    if target.kind.status and target.kind.conditional:
        found.pop("status", None)
        if "status" in old:
            found["status"] = old["status"]
    held = old["metadata"]
    kept = {name: held[name] for name in (*KEPT, "resourceVersion") if name in held}
    metadata = {name: value for name, value in new["metadata"].items() if name not in KEPT}
    found["metadata"] = {**metadata, **kept}
    return found


def _bare(found: Object) -> Object:
    """Return an object without the times in `managedFields`."""
    entries = found["metadata"].get("managedFields") or []
    timeless = [{name: entry[name] for name in entry if name != "time"} for entry in entries]
    return {**found, "metadata": {**found["metadata"], "managedFields": timeless}}


def _unmanaged(found: Object) -> Object:
    members = {name: one for name, one in found["metadata"].items() if name != "managedFields"}
    return {
        **found,
        "metadata": {name: one for name, one in members.items() if one not in ({}, [])},
    }


def _counted(found: Object) -> Object:
    """Return what raises the generation of an object."""
    return {name: value for name, value in found.items() if name not in ("metadata", "status")}
