"""An original whose API answers with anything: one sentence, or odd data; never a wrong row."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from moorage.client.transport import Transport
from moorage.integrations.placement.asking import PlacementApi
from moorage.integrations.placement.oddities import KINDS, Oddities
from moorage.integrations.placement.original_api import ApiSource
from moorage.integrations.placement.reading import Reading, silent
from moorage.integrations.placement.rows import decoded
from moorage.integrations.placement.sampling import Sizes
from moorage.integrations.placement.source_error import SourceError
from moorage.integrations.placement.verification import Verification, Verified
from moorage.integrations.placement.whole_ledger import WholeLedger
from tests.e2e.support.server import Server, serve

ONE = "00000000-0000-4000-8000-000000000001"
TWO = "00000000-0000-4000-8000-000000000002"
HELD = "00000000-0000-4000-8000-0000000000c1"

Answers = dict[str, Any]
"""What is answered by path: a value for JSON, or the bytes; with a status if it is a pair."""


def sound() -> Answers:
    """Return an original with a provider, its child and a consumer."""
    inventory = {
        "total": 8,
        "reserved": 0,
        "min_unit": 1,
        "max_unit": 8,
        "step_size": 1,
        "allocation_ratio": 1.5,
    }
    found: Answers = {
        "/": {"versions": [{"max_version": "1.39"}]},
        "/resource_classes": {"resource_classes": [{"name": "VCPU"}]},
        "/traits": {"traits": ["HW_CPU_X86_AVX2"]},
        "/resource_providers": {"resource_providers": [{"uuid": ONE}, {"uuid": TWO}]},
        f"/allocations/{HELD}": {
            "allocations": {ONE: {"generation": 1, "resources": {"VCPU": 2}}},
            "project_id": "p",
            "user_id": "u",
            "consumer_generation": 3,
            "consumer_type": "INSTANCE",
        },
    }
    for uuid, parent in ((ONE, None), (TWO, ONE)):
        at = f"/resource_providers/{uuid}"
        generation = {"resource_provider_generation": 1}
        found[at] = {
            "uuid": uuid,
            "name": f"name of {uuid}",
            "generation": 1,
            "parent_provider_uuid": parent,
        }
        found[f"{at}/inventories"] = {"inventories": {"VCPU": dict(inventory)}, **generation}
        found[f"{at}/traits"] = {"traits": ["HW_CPU_X86_AVX2"], **generation}
        found[f"{at}/aggregates"] = {"aggregates": [], **generation}
        found[f"{at}/allocations"] = {"allocations": {HELD: {}} if parent is None else {}}
        found[f"{at}/allocations"].update(generation)
    return found


@contextmanager
def served(answers: Answers, headers: dict[str, str] | None = None) -> Iterator[str]:
    """Answer on a port of this machine; yield the address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            found = answers.get(self.path, (404, b""))
            status, value = found if isinstance(found, tuple) else (200, found)
            body = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(status)
            for name, text in (headers or {}).items():
                self.send_header(name, text)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Be silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def read(answers: Answers, headers: dict[str, str] | None = None, **choices: Any) -> Reading:
    """Read an original with these answers."""
    with served(answers, headers) as url:
        source = ApiSource(PlacementApi(Transport(url, "token", environ={})))
        try:
            return source.read(Oddities(**choices), silent)
        finally:
            source.close()


def test_a_sound_original_is_read() -> None:
    """The control."""
    reading = read(sound())
    assert reading.rows.counts() == {"classes": 0, "traits": 0, "providers": 2, "consumers": 1}
    assert not list(reading.oddities.refused())


@pytest.mark.parametrize(
    "answer",
    [
        {},
        [],
        None,
        "text",
        b"<html>sign in</html>",
        b'{"resource_providers": [',
        b"[" * 50_000,
        {"resource_providers": [None]},
        (500, b""),
        (302, b""),
        (401, b""),
        (404, b""),
    ],
)
def test_other_answers_end_in_one_sentence(answer: Any) -> None:
    """Whatever the shape is."""
    answers = sound() | {"/resource_providers": answer}
    with pytest.raises(SourceError, match=r"127\.0\.0\.1"):
        read(answers)


@pytest.mark.parametrize("date", ["Mon, 01 Jan 99999999999999999999 00:00:00 GMT", "x"])
def test_dates_of_no_calendar_are_none(date: str) -> None:
    """They only cost the time of the change."""
    reading = read(sound(), {"Last-Modified": date})
    assert decoded("providers", reading.rows.providers[ONE]).created_at.year == 1970


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """An empty ledger."""
    file = tmp_path_factory.mktemp("lying") / "m.sqlite"
    with serve(file, "--auth", "noauth2") as running:
        yield running


@pytest.mark.parametrize(
    "answer", [{}, None, b"<html>", [], {"resource_providers": [{"uuid": []}]}, b"[" * 50_000]
)
def test_a_comparison_ends_in_one_sentence(server: Server, answer: Any) -> None:
    """Whatever the shape is."""
    ours = Transport(server.url, "admin")
    with served(sound() | {"/resource_providers": answer}) as url:
        original = PlacementApi(Transport(url, "token", environ={}))
        work = Verification(original, PlacementApi(ours), WholeLedger(ours), silent)
        with pytest.raises(SourceError, match=r"127\.0\.0\.1"):
            work.run(Sizes(), 2.0, Verified())


def test_no_redirect_is_followed() -> None:
    """Another host would get the token."""
    asked = []

    class Watched(dict[str, Any]):
        def get(self, path: str, default: Any = None) -> Any:
            asked.append(path)
            return default

    with served(Watched()) as other:
        answers = sound() | {"/resource_providers": (307, b"")}
        with pytest.raises(SourceError, match="307"):
            read(answers, {"Location": f"{other}/resource_providers"})
    assert asked == []


def changed(path: str, *place: str, to: Any) -> Answers:
    """Return a sound original with another value at one place."""
    answers = sound()
    at = answers[path]
    for name in place[:-1]:
        at = at[name]
    at[place[-1]] = to
    return answers


AT_ONE, AT_TWO = f"/resource_providers/{ONE}", f"/resource_providers/{TWO}"
STOCK = (f"{AT_ONE}/inventories", "inventories", "VCPU")
HOLDS = f"/allocations/{HELD}"

ODD: list[tuple[str, Answers]] = [
    *(
        ("inventory_invalid", changed(*STOCK, "allocation_ratio", to=ratio))
        for ratio in (float("nan"), float("inf"), 10**400, "1.0", None)
    ),
    *(
        ("inventory_invalid", changed(*STOCK, "total", to=total))
        for total in (-1, 2**31, "8", 8.5, True, None)
    ),
    ("provider_name_invalid", changed(AT_ONE, "name", to="\ud800")),
    ("provider_name_invalid", changed(AT_TWO, "name", to=f"name of {ONE}")),
    ("provider_name_invalid", changed(AT_ONE, "name", to="a\0b")),
    ("provider_uuid_invalid", changed(AT_TWO, "uuid", to=ONE)),
    ("parent_missing", changed(AT_TWO, "parent_provider_uuid", to="none")),
    ("parent_cycle", changed(AT_ONE, "parent_provider_uuid", to=TWO)),
    ("parent_cycle", changed(AT_TWO, "parent_provider_uuid", to=TWO)),
    ("class_unknown", changed(f"{AT_ONE}/inventories", "inventories", "X", to={"total": 1})),
    ("trait_unknown", changed(f"{AT_ONE}/traits", "traits", to=["\x1b[31m"])),
    ("aggregate_invalid", changed(f"{AT_ONE}/aggregates", "aggregates", to=["x"])),
    ("consumer_owner_missing", changed(HOLDS, "project_id", to=None)),
    ("consumer_owner_missing", changed(HOLDS, "user_id", to="\ud800")),
    ("generation_missing", changed(HOLDS, "consumer_generation", to="3")),
    ("allocation_invalid", changed(HOLDS, "allocations", ONE, "resources", "VCPU", to=0)),
    ("allocation_invalid", changed(HOLDS, "allocations", ONE, "resources", "VCPU", to="2")),
]
"""Values that no row can have, and the code of each."""


@pytest.mark.parametrize(("code", "answers"), ODD, ids=[str(at) for at in range(len(ODD))])
def test_odd_values_are_named_and_refused(code: str, answers: Answers) -> None:
    """As in a database; what is left can be sent once the operator has chosen."""
    reading = read(answers)
    assert code in dict(reading.oddities.refused())
    leave_out = [one for one, kind in KINDS.items() if kind.leave_out]
    complete = [one for one, kind in KINDS.items() if kind.complete and not kind.leave_out]
    settled = read(answers, leave_out=leave_out, complete=complete)
    assert not list(settled.oddities.refused())
    for kind in ("providers", "consumers"):
        for row in settled.rows.of(kind).values():
            decoded(kind, row)


def test_a_sound_owner_is_completed() -> None:
    """What is unknown becomes the project that stands for it."""
    answers = changed(HOLDS, "project_id", to=None)
    reading = read(answers, complete=["consumer_owner_missing"])
    row = decoded("consumers", reading.rows.consumers[HELD])
    assert (row.project, row.user) == ("00000000-0000-0000-0000-000000000000", "u")
