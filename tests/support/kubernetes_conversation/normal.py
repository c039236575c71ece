"""Removes from answers what differs from run to run: times, UIDs, versions, tokens."""

import json
import re
from typing import Any

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
MASKS = (
    (TIME, "TIME"),
    (re.compile(r"(gen-)[a-z0-9]{5}\b"), r"\1RANDOM"),
    (re.compile(r"(too old resource version: )\d+ \(\d+\)"), r"\1N (N)"),
    (re.compile(r"(ResourceVersion in record \()\d+"), r"\1N"),
    (re.compile(r"(Too large resource version: )\d+, current: \d+"), r"\1N, current: N"),
    (re.compile(r'(patch: Invalid value|^Invalid value): "\{.*\}": ', re.DOTALL), r"\1: OBJECT: "),
)
LISTS = re.compile(r"(?<= is invalid: )\[.*\]$", re.DOTALL)
SORTED = ("verbs", "shortNames")
FREE = ("description", "storageVersionHash")
"""Members whose values are not compared."""


class Normal:
    """Gives names to the UIDs and versions of one conversation, in the order of their appearance.

    A version is that of an object, such as `2 of UID 1`; those of lists are `some`.
    """

    def __init__(self) -> None:
        self._uids: dict[str, str] = {}
        self._versions: dict[str, list[str]] = {}

    def answer(self, found: dict[str, Any], *, fields: bool = False) -> dict[str, Any]:
        """Return an answer to compare; `fields`: with who manages which field."""
        return {**found, "body": self._any(found["body"], fields=fields)}

    def event(self, event: dict[str, Any]) -> dict[str, Any]:
        """Return an event of a watch to compare."""
        found = self._any(event)
        if event["type"] == "BOOKMARK":
            found["object"]["metadata"]["resourceVersion"] = "some"
        assert isinstance(found, dict)
        return found

    def _any(self, value: Any, *, fields: bool = False) -> Any:
        if isinstance(value, list):
            return [self._any(one, fields=fields) for one in value]
        if isinstance(value, str):
            return self._text(value)
        if not isinstance(value, dict):
            return value
        found = {}
        for name, one in value.items():
            if name == "metadata" and isinstance(one, dict):
                found[name] = self._metadata(one, fields=fields)
            elif name in FREE:
                found[name] = "free"
            elif name in SORTED:
                found[name] = sorted(one)
            elif name == "cells":
                found[name] = [self._any(cell) for cell in one[:-1]] + ["AGE"]
            else:
                found[name] = self._any(one, fields=fields)
        return _ordered(found)

    def _metadata(self, value: dict[str, Any], *, fields: bool) -> dict[str, Any]:
        found = {name: self._any(one, fields=fields) for name, one in value.items()}
        version = value.get("resourceVersion")
        if version is not None:
            found["resourceVersion"] = self._version(value.get("uid"), version)
        if value.get("continue"):
            found["continue"] = "token"
        entries = found.pop("managedFields", None)
        if entries and fields:
            keys = ("manager", "operation", "subresource")
            found["managedFields"] = sorted(
                entries, key=lambda one: [one.get(name, "") for name in keys]
            )
        return found

    def _version(self, uid: str | None, version: str) -> str:
        if uid is None:
            return "some"
        known = self._versions.setdefault(uid, [])
        if version not in known:
            known.append(version)
        return f"{known.index(version) + 1} of {self._text(uid)}"

    def _text(self, text: str) -> str:
        for pattern, name in MASKS:
            text = pattern.sub(name, text)
        return UID.sub(self._named, text)

    def _named(self, found: re.Match[str]) -> str:
        return self._uids.setdefault(found[0], f"UID {len(self._uids) + 1}")


def _ordered(found: dict[str, Any]) -> dict[str, Any]:
    """Sort the causes of a refusal, which the server finds in no order, also in the message."""
    causes = found.get("causes") or (found.get("details") or {}).get("causes")
    if not isinstance(causes, list) or not causes:
        return found
    causes.sort(key=lambda cause: json.dumps(cause, sort_keys=True))
    if isinstance(found.get("message"), str) and len(causes) > 1:
        shown = sorted({f"{one.get('field')}: {one['message']}" for one in causes})
        found["message"] = LISTS.sub(lambda _: f"[{', '.join(shown)}]", found["message"], count=1)
    return found
