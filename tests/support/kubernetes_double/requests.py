"""Reads requests: which resource, which object, which verb."""

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import yaml

from tests.support.kubernetes_double import kinds
from tests.support.kubernetes_double.kinds import Kind
from tests.support.kubernetes_double.status import (
    NotServed,
    bad_request,
    not_found,
    not_supported,
    unknown_path,
)

VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}


@dataclass(frozen=True)
class Target:
    """What a request is about; `name` and `part` (the subresource) may be empty."""

    kind: Kind
    namespace: str
    name: str
    part: str

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Where the object is stored."""
        return (self.kind.group, self.kind.plural, self.namespace, self.name)


@dataclass(frozen=True)
class Received:
    """A request as it arrived; `user` is who sent it, `warnings` go with the answer."""

    method: str
    raw_path: str
    headers: dict[str, str]
    body: bytes
    user: str = ""
    warnings: list[str] = field(default_factory=list)

    @cached_property
    def path(self) -> str:
        """The path without the query."""
        return unquote(urlsplit(self.raw_path).path).rstrip("/")

    @cached_property
    def query(self) -> dict[str, str]:
        """The parameters."""
        return dict(parse_qsl(urlsplit(self.raw_path).query, keep_blank_values=True))

    def flag(self, name: str) -> bool:
        """Return whether a parameter is set."""
        return self.query.get(name, "").lower() in ("1", "true")

    def number(self, name: str) -> int | None:
        """Return a parameter; None: it is missing. Raises Refused."""
        text = self.query.get(name, "")
        if text and not text.isdigit():
            raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
        return int(text) if text else None

    @property
    def content_type(self) -> str:
        """The type of the body."""
        return self.headers.get("content-type", "").partition(";")[0]

    @cached_property
    def document(self) -> Any:
        """The body, which is JSON or YAML; None: there is none. Raises Refused."""
        try:
            if self.content_type.endswith("yaml"):
                return yaml.safe_load(self.body)
            return json.loads(self.body) if self.body else None
        except (ValueError, yaml.YAMLError) as error:
            raise bad_request(f"the body is not {self.content_type or 'JSON'}: {error}") from None

    @property
    def manager(self) -> str:
        """Who manages the fields that the request changes."""
        agent = self.headers.get("user-agent", "unknown").partition("/")[0]
        return self.query.get("fieldManager") or agent

    @cached_property
    def asked(self) -> Target:
        """What the path names, whether there is such a resource or not. Raises NotServed."""
        match self.path.split("/")[1:]:
            case ["api", version, *rest]:
                group = ""
            case ["apis", group, version, *rest]:
                pass
            case _:
                raise NotServed
        namespace = ""
        if rest[:1] == ["namespaces"] and len(rest) > 2 and rest[2] not in ("status", "finalize"):
            namespace, rest = rest[1], rest[2:]
        if not rest or len(rest) > 3:
            raise NotServed
        unknown = Kind(group, version, rest[0], rest[0], rest[0])
        name, part = (*rest[1:], "", "")[:2]
        return Target(kinds.find(group, version, rest[0]) or unknown, namespace, name, part)

    @cached_property
    def target(self) -> Target:
        """What it is about. Raises NotServed and Refused if there is no such resource."""
        found = self.asked
        kind, name, part = found.kind, found.name, found.part
        own = any(one.group == kind.group and not one.custom for one in kinds.KINDS)
        unknown = unknown_path() if own else NotServed()
        if kind not in kinds.KINDS or (found.namespace and not kind.namespaced):
            raise unknown
        if kind.namespaced and not found.namespace and (name or self.method != "GET"):
            raise unknown
        if part and not (part == "status" and kind.status):
            raise not_found(kind.group, kind.plural, name) if kind.custom else unknown
        return found

    @cached_property
    def asked_verb(self) -> str:
        """The verb, as access rules name it, whether the resource has it or not."""
        named = bool(self.asked.name)
        match self.method:
            case "GET":
                return "get" if named else "watch" if self.flag("watch") else "list"
            case "DELETE":
                return "delete" if named else "deletecollection"
        return VERBS[self.method]

    @cached_property
    def verb(self) -> str:
        """The verb. Raises Refused and NotServed if the resource does not have it."""
        kind, named, verb = self.target.kind, bool(self.target.name), self.asked_verb
        if self.target.part and verb in ("create", "delete"):
            raise not_supported(kind.group, kind.plural, verb) if kind.custom else NotServed
        if not named and verb in ("update", "patch"):
            raise bad_request("name must be provided") if kind.custom else NotServed
        if named and verb == "create" and not kind.custom:
            raise not_supported(kind.group, kind.plural, verb)
        return verb
