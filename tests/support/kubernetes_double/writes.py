"""Creates, changes and removes objects, with the rules of their metadata.

The order is that of the server: the body is read, admission may change the object, then the version
is compared, then the schema is held against it, then it is stored.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import uuid4

from tests.support.kubernetes_double import applying, decoding, patches, status
from tests.support.kubernetes_double.admission import Admission, Asked
from tests.support.kubernetes_double.kinds import CRDS
from tests.support.kubernetes_double.requests import Received, Target
from tests.support.kubernetes_double.status import Cause
from tests.support.kubernetes_double.storage import Object, Storage

KEPT = ("creationTimestamp", "namespace", "generation")
"""Members of metadata that no update changes."""
LEAVING = ("deletionTimestamp", "deletionGracePeriodSeconds")
"""Those that no update removes; none may add them."""
VERSION = "ResourceVersion"
SYSTEM = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")
"""Members of metadata that a create does not set."""


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
        is_dry, wanted = decoding.is_dry_run(request), decoding.decoded(request)
        target = replace(request.target, name=wanted["metadata"].get("name", ""))
        return await self._create(request, target, wanted, is_dry=is_dry)

    async def _create(
        self, request: Received, target: Target, wanted: Object, *, is_dry: bool
    ) -> Object:
        kind, metadata = target.kind, wanted["metadata"]
        for name in SYSTEM:
            metadata.pop(name, None)
        if request.content_type != patches.APPLY:
            fields = applying.after_update(None, wanted, kind, request.manager, "")
            metadata["managedFields"] = fields
        fields = metadata["managedFields"]
        self._check_namespace(target)
        asked = _asked("CREATE", request, target, None, is_dry=is_dry)
        wanted = await self._admission.admit(asked, wanted)
        metadata = wanted["metadata"] = {**wanted["metadata"], "managedFields": fields}
        if kind.status and kind is not CRDS:
            wanted.pop("status", None)
        if metadata.get("generateName") and not metadata.get("name"):
            metadata["name"] = metadata["generateName"] + uuid4().hex[:5]
        if metadata.get("name"):
            decoding.completed(kind, wanted)
        target = replace(target, name=metadata.get("name", ""))
        metadata |= {"uid": self._uid(), "creationTimestamp": applying.now()}
        if kind.generation:
            metadata["generation"] = 1
        self._check_schema(request, target, wanted, None)
        if not metadata.get("name"):
            text = "Required value: name or generateName is required"
            cause = Cause("FieldValueRequired", text, "metadata.name")
            raise status.invalid(kind.group, kind.kind, "", [cause])
        if metadata.get("resourceVersion"):
            text = "resourceVersion should not be set on objects to be created"
            raise status.Refused(500, text, "")
        if self._storage.get(target.key) is not None:
            raise status.exists(kind.group, kind.plural, target.name)
        return wanted if is_dry else self._storage.write(target.key, wanted)

    def _check_namespace(self, target: Target) -> None:
        if not target.kind.namespaced:
            return
        if self._storage.get(("", "namespaces", "", target.namespace)) is None:
            raise status.not_found("", "namespaces", target.namespace)

    async def update(self, request: Received) -> Object:
        """Replace an object. Raises Refused."""
        is_dry, wanted = decoding.is_dry_run(request), decoding.decoded(request)
        old = self._old(request)
        self._check_uid(request.target, old, wanted["metadata"].get("uid"))
        return await self._replace(request, old, wanted, is_dry=is_dry)

    async def patch(self, request: Received) -> Object:
        """Patch an object; a patch that is applied may create it. Raises Refused."""
        custom = request.target.kind.custom
        known = [patches.JSON, patches.MERGE, *([] if custom else [patches.STRATEGIC])]
        known += [patches.APPLY]
        if request.content_type not in known:
            text = "the body of the request was in an unknown format - accepted media types "
            raise status.Refused(415, f"{text}include: {', '.join(known)}")
        is_dry = decoding.is_dry_run(request)
        if request.content_type == patches.APPLY:
            return await self._apply(request, is_dry=is_dry)
        if "force" in request.query:
            text = "Forbidden: may not be specified for non-apply patch"
            raise status.wrong_option("PatchOptions", "force", text)
        old = self._old(request)
        if request.document is None:
            raise status.bad_request("the patch is empty")
        if request.content_type != patches.JSON and not isinstance(request.document, dict):
            what = "array into Go value of type map[string]interface {}"
            raise status.bad_request(f"{patches.UNDECODED} {what}")
        change = patches.json_patched if request.content_type == patches.JSON else patches.merged
        new = json.loads(json.dumps(change(old, request.document)))
        decoding.coerced(request, new)
        decoding.check_place(request, new)
        return await self._replace(request, old, new, is_dry=is_dry)

    async def _apply(self, request: Received, *, is_dry: bool) -> Object:
        target, force = request.target, request.flag("force")
        wanted = decoding.applied(request)
        manager = request.query.get("fieldManager", "")
        old = self._storage.get(target.key)
        if old is None and target.part:
            raise status.not_found(target.kind.group, target.kind.plural, target.name)
        empty = {"apiVersion": wanted["apiVersion"], "kind": wanted["kind"]}
        live = old or {**empty, "metadata": {"name": target.name}}
        new = applying.applied(live, wanted, target.kind, manager, force=force, part=target.part)
        decoding.coerced(request, new)
        decoding.check_place(request, new)
        if old is None:
            return await self._create(request, target, new, is_dry=is_dry)
        return await self._replace(request, old, new, is_dry=is_dry, managed=True)

    async def _replace(
        self, request: Received, old: Object, new: Object, *, is_dry: bool, managed: bool = False
    ) -> Object:
        target = request.target
        kind = target.kind
        if not managed:
            fields = applying.after_update(old, new, kind, request.manager, target.part)
            new = {**new, "metadata": {**new["metadata"], "managedFields": fields}}
        fields = new["metadata"]["managedFields"]
        asked = _asked("UPDATE", request, target, old, is_dry=is_dry)
        new = await self._admission.admit(asked, new)
        # Admission takes time: somebody may have been faster. The request is carried out again, as
        # the server does; one that names a version is then refused.
        if self._storage.get(target.key) is not old:
            again = self.patch if request.method == "PATCH" else self.update
            return await again(request)
        self._check_version(target, old, new["metadata"].get("resourceVersion"))
        new["metadata"]["managedFields"] = fields
        new = _with_fixed(target, old, new)
        if kind.generation and _counted(new) != _counted(old):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        self._check_schema(request, target, new, old)
        metadata = new["metadata"]
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            if not is_dry:
                self._storage.write(target.key, None)
            return new
        if _bare(new) == _bare(old):
            return old
        return new if is_dry else self._storage.write(target.key, new)

    def _check_schema(
        self, request: Received, target: Target, new: Object, old: Object | None
    ) -> None:
        kind = target.kind
        if causes := decoding.problems(kind, new, old, target.part):
            group = new["apiVersion"].rpartition("/")[0]
            raise status.invalid(group, new["kind"], target.name, causes)
        if kind.custom and not target.part:
            request.warnings.extend(decoding.finalizer_warnings(new, old))

    def _check_version(self, target: Target, old: Object, wanted: str | None) -> None:
        kind = target.kind
        if kind.custom and not wanted:
            text = "Invalid value: 0: must be specified for an update"
            cause = Cause("FieldValueInvalid", text, "metadata.resourceVersion")
            raise status.invalid(kind.group, kind.plural, target.name, [cause])
        if wanted and wanted != old["metadata"]["resourceVersion"]:
            raise status.conflict(kind.group, kind.plural, target.name)

    def _check_uid(self, target: Target, old: Object, wanted: str | None) -> None:
        if wanted and wanted != old["metadata"]["uid"]:
            raise _precondition(target, wanted, old["metadata"]["uid"])

    def delete(self, request: Received) -> Object:
        """Delete an object, or mark it while it has finalizers. Raises Refused."""
        is_dry, target, old = decoding.is_dry_run(request), request.target, self._old(request)
        options = request.document or {}
        for name, wanted in (options.get("preconditions") or {}).items():
            if wanted != old["metadata"].get(name):
                raise _other(target, name, wanted, old["metadata"].get(name))
        return self.remove(target, old, is_dry=is_dry or bool(options.get("dryRun")))

    def remove(self, target: Target, old: Object, *, is_dry: bool = False) -> Object:
        """Delete an object without further checks."""
        metadata = old["metadata"]
        if metadata.get("finalizers"):
            if metadata.get("deletionTimestamp"):
                return old
            marked = {"deletionTimestamp": applying.now(), "deletionGracePeriodSeconds": 0}
            if target.kind.generation:
                marked["generation"] = metadata.get("generation", 0) + 1
            new = {**old, "metadata": {**metadata, **marked}}
            return new if is_dry else self._storage.write(target.key, new)
        if not is_dry:
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


def _asked(
    operation: str, request: Received, target: Target, old: Object | None, *, is_dry: bool
) -> Asked:
    """Return what admission is asked about."""
    named = (request.query.get(name, "") for name in ("fieldManager", "fieldValidation"))
    return Asked(operation, target, request.user, old, is_dry, *named)


def _other(target: Target, name: str, wanted: str, held: str | None) -> status.Refused:
    """Return the refusal to delete another object, or another version of it."""
    what, why = ("UID", "deleted and then recreated") if name == "uid" else (VERSION, "modified")
    text = (
        f"the {what} in the precondition ({wanted}) does not match the {what} in record ({held}). "
        f"The object might have been {why}"
    )
    return status.conflict(target.kind.group, target.kind.kind, target.name, text)


def _precondition(target: Target, wanted: str, held: str) -> status.Refused:
    """Return the refusal to replace another object."""
    kind = target.kind
    path = "/".join(filter(None, (kind.group, kind.plural, target.namespace, target.name)))
    why = (
        f"StorageError: invalid object, Code: 4, Key: /registry/{path}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: UID in precondition: {wanted}, UID in object "
        f"meta: {held}"
    )
    return status.conflict(kind.group, kind.plural, target.name, why)


def _with_fixed(target: Target, old: Object, new: Object) -> Object:
    """Return what an update may change: either the status or everything else."""
    held = old["metadata"]
    if target.part == "status":
        found = {name: one for name, one in old.items() if name != "status"}
        if "status" in new:
            found["status"] = new["status"]
        managed = new["metadata"].get("managedFields")
        return {**found, "metadata": {**held, "managedFields": managed}}
    found = dict(new)
    if target.kind.status and target.kind.custom:
        found.pop("status", None)
        if "status" in old:
            found["status"] = old["status"]
    metadata = {name: one for name, one in new["metadata"].items() if one not in ({}, [], None)}
    kept = {name: held[name] for name in (*KEPT, *LEAVING, "resourceVersion") if name in held}
    metadata = {name: one for name, one in metadata.items() if name not in KEPT}
    found["metadata"] = {"uid": held["uid"], **metadata, **kept}
    return found


def _bare(found: Object) -> Object:
    """Return an object without the times in `managedFields` and members that are empty."""
    members: dict[str, Any] = {
        name: one for name, one in found["metadata"].items() if one not in ({}, [])
    }
    members["managedFields"] = [
        {name: entry[name] for name in entry if name != "time"}
        for entry in found["metadata"].get("managedFields") or []
    ]
    return {**found, "metadata": members}


def _counted(found: Object) -> Object:
    """Return what raises the generation of an object."""
    return {name: value for name, value in found.items() if name not in ("metadata", "status")}
