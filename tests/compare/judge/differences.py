"""The differences between two answers: headers and bodies, values and their order."""

import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from tests.e2e.support.peer import Answer

OF_THE_SERVER = {"date", "server", "connection"}
"""Headers of the HTTP server, not of the API."""

REQUEST_ID = "x-openstack-request-id"
REQUEST_ID_FORM = re.compile(r"req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MODIFIED = "last-modified"
MODIFIED_SECONDS = 1.0
"""The largest permitted difference: both sides get the same request within a moment."""

ABSENT = "(absent)"

JSON = "application/json"

REFUSALS = {
    "text/html": re.compile(
        r"(?P<opening>.*?\n  )(?P<sentence>[^\n]*)<br /><br />\n(?P<detail>.*?)"
        r"(?P<closing>\n* </body>\n</html>)",
        re.S,
    ),
    "text/plain": re.compile(
        r"(?P<opening>[^\n]*\n\n)(?P<sentence>[^\n]*)\n\n(?P<detail>.*?)(?P<closing>\s*)", re.S
    ),
}
"""The format of a refusal for a client that does not accept JSON."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference: its place (`aspect`), and the value of each side there.

    Aspects: `status`; `header NAME`; `body PATH` for a value; `order PATH` for the same keys or
    members in another order; `text` for a body that is not JSON.
    """

    aspect: str
    theirs: Any
    ours: Any


def header_differences(
    theirs: Answer, ours: Answer, beginnings: tuple[str, str]
) -> Iterator[Difference]:
    """Yield the headers that differ.

    The length of a body may differ. `beginnings` are the times of the standard names on each side,
    which differ because the databases are created one after the other.
    """
    for name in sorted((theirs.headers.keys() | ours.headers.keys()) - OF_THE_SERVER):
        one, other = theirs.headers.get(name, ABSENT), ours.headers.get(name, ABSENT)
        if name == MODIFIED and (one, other) == beginnings:
            continue
        if one != other and not _same(name, one, other):
            yield Difference(f"header {name}", one, other)


def _same(name: str, theirs: str, ours: str) -> bool:
    if ABSENT in (theirs, ours):
        return False
    match name:
        case "x-openstack-request-id":
            return all(REQUEST_ID_FORM.fullmatch(value) for value in (theirs, ours))
        case "last-modified":
            apart = parsedate_to_datetime(theirs) - parsedate_to_datetime(ours)
            return abs(apart.total_seconds()) <= MODIFIED_SECONDS
        case "content-length":
            return True
    return False


def body_differences(theirs: Answer, ours: Answer) -> Iterator[Difference]:
    """Yield the differences of the bodies."""
    one, other = meaning(theirs), meaning(ours)
    if isinstance(one, bytes) or isinstance(other, bytes) or _form(theirs) != _form(ours):
        if one != other:
            yield Difference("text", theirs.body, ours.body)
        return
    found = list(walk(one, other, ""))
    yield from found
    if not found and _form(theirs) != JSON and theirs.body != ours.body:
        yield Difference("text", theirs.body, ours.body)


def meaning(answer: Answer) -> Any:
    """Return a body's JSON value, with a placeholder for the header's request id; or the bytes.

    A refusal in another format is converted to the same keys, so that its detail can be compared.
    """
    if _form(answer) != JSON:
        return _refusal(answer) or answer.body
    try:
        value = json.loads(answer.body)
    except ValueError:
        return answer.body
    if isinstance(value, dict) and isinstance(errors := value.get("errors"), list):
        for error in errors:
            if error.get("request_id") == answer.headers.get(REQUEST_ID):
                error["request_id"] = REQUEST_ID
    return value


def _form(answer: Answer) -> str:
    return answer.headers.get("content-type", "").partition(";")[0]


def _refusal(answer: Answer) -> dict[str, Any] | None:
    pattern = REFUSALS.get(_form(answer))
    found = pattern and pattern.fullmatch(answer.body.decode("utf-8", "replace"))
    if not found or answer.status < 400:
        return None
    said = f"{found['sentence']}\n\n{found['detail']}"
    if pattern is REFUSALS["text/html"]:
        said = html.unescape(said)
    frame = [found["opening"], found["closing"]]
    return {"errors": [{"detail": said}], "frame": frame}


def canonical(value: Any) -> str:
    """Return a text that is the same for all orders of keys and members."""
    return json.dumps(_sorted(value), sort_keys=True)


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(of) for key, of in value.items()}
    if isinstance(value, list):
        return sorted(map(_sorted, value), key=canonical_key)
    return value


def canonical_key(value: Any) -> str:
    """Return the sort key of a member."""
    return json.dumps(value, sort_keys=True)


def walk(theirs: Any, ours: Any, path: str) -> Iterator[Difference]:
    """Yield the differences between two JSON values at a path of their bodies."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        yield from _walk_keys(theirs, ours, path)
    elif isinstance(theirs, list) and isinstance(ours, list):
        yield from _walk_members(theirs, ours, path)
    elif type(theirs) is not type(ours) or theirs != ours:
        yield Difference(f"body {path}", theirs, ours)


def _walk_keys(theirs: dict[str, Any], ours: dict[str, Any], path: str) -> Iterator[Difference]:
    if theirs.keys() != ours.keys():
        yield Difference(f"body {path}{{}}", list(theirs), list(ours))
    elif list(theirs) != list(ours):
        yield Difference(f"order {path}{{}}", list(theirs), list(ours))
    for key in theirs.keys() & ours.keys():
        yield from walk(theirs[key], ours[key], f"{path}/{key}")


def _walk_members(theirs: list[Any], ours: list[Any], path: str) -> Iterator[Difference]:
    one, other = [canonical(of) for of in theirs], [canonical(of) for of in ours]
    if sorted(one) == sorted(other):
        if one != other:
            yield Difference(f"order {path}[]", theirs, ours)
        theirs = sorted(theirs, key=canonical)
        ours = sorted(ours, key=canonical)
    elif len(theirs) != len(ours):
        yield Difference(f"body {path}[]", theirs, ours)
        return
    for n, (left, right) in enumerate(zip(theirs, ours, strict=True)):
        yield from walk(left, right, f"{path}/{n}")
