"""Documents about the API itself: versions, groups, resources, and the little OpenAPI it needs."""

from collections.abc import Iterator
from typing import Any

from tests.support.kubernetes_double.kinds import KINDS, VERBS, Kind, groups

Document = dict[str, Any]

VERSION = {
    "major": "1",
    "minor": "34",
    "gitVersion": "v1.34.0",
    "gitCommit": "double",
    "gitTreeState": "clean",
    "buildDate": "2026-01-01T00:00:00Z",
    "goVersion": "go1.24",
    "compiler": "gc",
    "platform": "linux/amd64",
}
AGGREGATED = "APIGroupDiscoveryList"


def document(path: str, accept: str) -> Document | None:
    """Return the document of a path; None: it has none."""
    if path in ("/api", "/apis") and AGGREGATED in accept:
        return _aggregated(path, "v2" if "v=v2;" in accept else "v2beta1")
    match path.split("/")[1:]:
        case ["version"]:
            return VERSION
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"]}
        case ["apis"]:
            listed = [_group(group, versions) for group, versions in groups()]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}
        case ["apis", group] if group in dict(groups()):
            found = _group(group, dict(groups())[group])
            return {"kind": "APIGroup", "apiVersion": "v1", **found}
        case ["api", version]:
            return _resources("", version)
        case ["apis", group, version]:
            return _resources(group, version)
        case ["openapi", "v2"]:
            info = {"title": "Kubernetes", "version": VERSION["gitVersion"]}
            return {"swagger": "2.0", "info": info, "paths": {}, "definitions": {}}
        case ["openapi", "v3"]:
            paths = [_prefix(kind)[1:] for kind in KINDS]
            return {"paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}"} for path in paths}}
        case ["openapi", "v3", *rest]:
            return _openapi("/" + "/".join(rest))
    return None


def _prefix(kind: Kind) -> str:
    return f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"


def _group(group: str, versions: list[str]) -> Document:
    found = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": found, "preferredVersion": found[0]}


def _of(group: str, version: str) -> Iterator[Kind]:
    return (kind for kind in KINDS if (kind.group, kind.version) == (group, version))


def _resources(group: str, version: str) -> Document | None:
    found = [entry for kind in _of(group, version) for entry in _entries(kind)]
    if not found:
        return None
    name = f"{group}/{version}" if group else version
    members = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name}
    return {**members, "resources": found}


def _entries(kind: Kind) -> Iterator[Document]:
    shared = {"namespaced": kind.namespaced, "kind": kind.kind}
    names = {"name": kind.plural, "singularName": kind.singular, "shortNames": [*kind.short]}
    yield {**names, **shared, "verbs": [*VERBS], "storageVersionHash": "double"}
    if kind.status:
        verbs = ["get", "patch", "update"]
        yield {"name": f"{kind.plural}/status", "singularName": "", **shared, "verbs": verbs}


def _aggregated(path: str, version: str) -> Document:
    listed = groups() if path == "/apis" else iter([("", ["v1"])])
    items = [
        {
            "metadata": {"name": group, "creationTimestamp": None},
            "versions": [
                {
                    "version": one,
                    "freshness": "Current",
                    "resources": [_discovered(kind) for kind in _of(group, one)],
                }
                for one in versions
            ],
        }
        for group, versions in listed
    ]
    api = f"apidiscovery.k8s.io/{version}"
    return {"kind": AGGREGATED, "apiVersion": api, "metadata": {}, "items": items}


def _discovered(kind: Kind) -> Document:
    named = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    found: Document = {
        "resource": kind.plural,
        "responseKind": named,
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "shortNames": [*kind.short],
        "verbs": [*VERBS],
    }
    if kind.status:
        verbs = ["get", "patch", "update"]
        found["subresources"] = [{"subresource": "status", "responseKind": named, "verbs": verbs}]
    return found


def _openapi(prefix: str) -> Document:
    """Return which parameters the patches of a group have: clients look for `fieldValidation`."""
    paths = {}
    for kind in KINDS:
        if _prefix(kind) != prefix:
            continue
        space = "/namespaces/{namespace}" if kind.namespaced else ""
        named = {"group": kind.group, "version": kind.version, "kind": kind.kind}
        names = ("dryRun", "fieldManager", "fieldValidation", "force")
        operation = {
            "parameters": [{"name": name, "in": "query", "schema": {}} for name in names],
            "responses": {"200": {"description": "OK"}},
            "x-kubernetes-action": "patch",
            "x-kubernetes-group-version-kind": named,
        }
        paths[f"{prefix}{space}/{kind.plural}/{{name}}"] = {"patch": operation}
    info = {"title": "Kubernetes", "version": VERSION["gitVersion"]}
    return {"openapi": "3.0.0", "info": info, "paths": paths}
