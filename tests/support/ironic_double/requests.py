"""A request as the double has received it, and what of Ironic's routing is needed to read it."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl, unquote

from tests.support.ironic_double import errors
from tests.support.ironic_double.documents import LEAST, NEWEST

VERSION = "X-OpenStack-Ironic-API-Version"
FORM = "application/x-www-form-urlencoded"
NEWEST_SUFFIX = 90
"""The last minor version in which a path may end with `.json`."""


@dataclass
class Received:
    """A request. `path` is as sent, with its query; names of headers are in small letters."""

    time: float
    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def log(self) -> dict[str, Any]:
        """Return it for the log: with a digest of the body."""
        return {
            "time": self.time,
            "method": self.method,
            "path": self.path,
            "headers": dict(self.headers),
            "digest": hashlib.sha256(self.body).hexdigest(),
            "kind": self.kind,
            "node": self.node,
        }

    @property
    def base(self) -> str:
        """The address by which the client reaches Ironic."""
        return f"http://{self.headers.get('host', '127.0.0.1')}"

    @cached_property
    def minor(self) -> int:
        """The minor version that the client wants. Raises Refused."""
        wanted = self._wanted or f"1.{LEAST}"
        if wanted == "latest":
            return NEWEST
        major, _, minor = wanted.partition(".")
        supported = f"The supported version range is: [1.{LEAST}, 1.{NEWEST}]."
        if not (major.isdecimal() and minor.isdecimal()):
            raise errors.routing(
                406, "Not Acceptable", f"Invalid value for {VERSION} header", versions="no"
            )
        if major != "1":
            text = f"Mutually exclusive versions requested. Version {wanted} requested but not"
            raise self._unsupported(f"{text} supported by this service. {supported}")
        if not LEAST <= int(minor) <= NEWEST:
            text = f"Version {wanted} was requested but the minor version is not supported by"
            raise self._unsupported(f"{text} this service. {supported}")
        return int(minor)

    @property
    def _wanted(self) -> str:
        """The version as text, from one of the two headers that have it."""
        service, _, version = self.headers.get("openstack-api-version", "").partition(" ")
        return version if service == "baremetal" else self.headers.get(VERSION.lower(), "")

    @property
    def supported(self) -> bool:
        """Whether there is the version that the client wants."""
        try:
            return self.minor > 0
        except errors.Refused:
            return False

    def _unsupported(self, text: str) -> errors.Refused:
        if self.names == []:
            return errors.fault(406, text)
        return errors.routing(406, "Not Acceptable", text)

    @cached_property
    def names(self) -> list[str]:
        """The parts of the path, without `v1`, and without a suffix that old versions allow."""
        names = [unquote(part) for part in self.path.partition("?")[0].split("/")[1:]]
        if names[-1:] == [""]:
            names.pop()
        if names and names[-1].endswith(".json") and self._allows_suffix():
            names[-1] = names[-1].removesuffix(".json")
        return names

    def _allows_suffix(self) -> bool:
        minor = self._wanted.partition(".")[2]
        return minor.isdecimal() and int(minor) <= NEWEST_SUFFIX

    @property
    def query(self) -> dict[str, str]:
        """The parameters of the address."""
        return dict(parse_qsl(self.path.partition("?")[2], keep_blank_values=True))

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the address, with those of the body."""
        found: dict[str, Any] = dict(self.query)
        kind = self.headers.get("content-type", "").partition(";")[0]
        if kind == "application/json" and self.body:
            try:
                members = json.loads(self.body)
            except ValueError:
                return found
            return found | members if isinstance(members, dict) else found
        return found | dict(parse_qsl(self.body.decode())) if kind == FORM else found

    @property
    def json(self) -> Any:
        """The body. Raises Refused."""
        try:
            return json.loads(self.body or b"{}")
        except ValueError as error:
            raise errors.fault(500, str(error)) from None

    @property
    def at_nodes(self) -> list[str] | None:
        """The parts of the path after `nodes`; None: it leads elsewhere."""
        match self.names:
            case ["v1", "nodes", *rest] | ["v1", "chassis", "nodes", *rest]:
                return rest
        return None

    @property
    def provision(self) -> tuple[list[str], list[str]] | None:
        """The parts before and after `states/provision`; None: it is another request."""
        match self.at_nodes:
            case ["states", "provision", *after]:
                return after[:1], after[1:]
            case [node, "states", "provision", *after]:
                return [node], after
        return None

    @cached_property
    def kind(self) -> str:
        """Which request it is: one of KINDS of the faults."""
        if self.provision is not None:
            return "provision" if self.method == "PUT" else "other"
        match self.method, self.names:
            case "GET", [] | ["v1"] | ["v1", "drivers"]:
                return "document"
            case "GET", ["v1", "conductors"]:
                return "conductors"
            case "POST", ["v1", "heartbeat", _]:
                return "heartbeat"
            case "PUT" | "DELETE", ["v1", "nodes", _, "maintenance"]:
                return "maintenance"
            case "GET" | "PUT" | "DELETE", ["v1", "nodes", _, "traits"]:
                return "traits"
            case "PUT", ["v1", "nodes", _, "states", "power"]:
                return "power"
            case "GET", ["v1", "nodes"] | ["v1", "nodes", "detail"]:
                return "list"
            case "GET", ["v1", "nodes", _, "states" | "validate" as room]:
                return room
            case "GET", ["v1", "nodes", _]:
                return "read"
            case "POST", ["v1", "nodes"]:
                return "create"
            case "PATCH", ["v1", "nodes", _]:
                return "patch"
            case "DELETE", ["v1", "nodes", _]:
                return "delete"
        return "other"

    @property
    def node(self) -> str | None:
        """What the request calls its node; None: it is about none."""
        if self.provision is not None:
            given: str | None = next(iter(self.provision[0]), self.parameters.get("node_ident"))
            return given
        names = self.names[2:3]
        return names[0] if names and self.kind != "list" else None
