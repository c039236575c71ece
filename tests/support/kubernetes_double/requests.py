"""Reads requests: which resource, which object, which verb."""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import yaml

from tests.support.kubernetes_double import kinds
from tests.support.kubernetes_double.kinds import Kind
from tests.support.kubernetes_double.status import bad_request, no_such_path


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
    """A request as it arrived; `user` is who sent it."""

    method: str
    raw_path: str
    headers: dict[str, str]
    body: bytes
    user: str = ""

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
            raise bad_request(f"invalid {name}: {text}")
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
    def target(self) -> Target:
        """What it is about. Raises Refused if there is no such resource."""
        match self.path.split("/")[1:]:
            case ["api", version, *rest]:
                group = ""
            case ["apis", group, version, *rest]:
                pass
            case _:
                raise no_such_path()
        namespace = ""
        if rest[:1] == ["namespaces"] and len(rest) > 2 and rest[2] not in ("status", "finalize"):
            namespace, rest = rest[1], rest[2:]
        kind = kinds.find(group, version, rest[0]) if rest else None
        if kind is None or len(rest) > 3 or (namespace and not kind.namespaced):
            raise no_such_path()
        name, part = (*rest[1:], "", "")[:2]
        if kind.namespaced and name and not namespace:
            raise no_such_path()
        if part and not (part == "status" and kind.status):
            raise no_such_path()
        return Target(kind, namespace, name, part)

    @cached_property
    def verb(self) -> str:
        """The verb, as access rules name it. Raises Refused."""
        named = bool(self.target.name)
        match self.method:
            case "GET":
                return "watch" if self.flag("watch") else "get" if named else "list"
            case "POST" if not named:
                return "create"
            case "PUT" if named:
                return "update"
            case "PATCH" if named:
                return "patch"
            case "DELETE":
                return "delete" if named else "deletecollection"
        raise no_such_path()
