"""Signs of life are answered from memory; the answers are those of the longer way."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.faces.auth.token import TokenAuthenticator
from moorage.faces.json_decoding import plain_decode
from moorage.faces.v1.decoding import body_decode
from moorage.faces.v1.prompt import PromptFace
from moorage.faces.v1.routes import ROUTES
from moorage.faces.web import Limits, RefusalError
from moorage.serve.http.prompt_connection import PROMPT_BYTES_MAX
from moorage.wire.fleet import AliveRequest, ReportRequest
from tests.faces.v1.fleet.machine import PAGES, Machine
from tests.faces.v1.native import Native
from tests.serve.wire import HOST, Answer, Wire, talk
from tests.service.fleet import machines
from tests.service.fleet.alone import play
from tests.service.running import TESTER, Running

LAST = b"GET /v1/nothing HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
"""A request that ends the connection."""

VARYING = re.compile(rb"(?i)x-openstack-request-id: \S+|req-[0-9a-f-]{36}|\"next_in\":[0-9.]+")
"""What differs between two answers to the same request."""

EXPECTING = b"Expect: 100-continue\r\n"

BODIES = [
    b'{"boot_id": "boot-1", "report_generation": %d}',
    b'{"boot_id":"boot-1","report_generation":%d}',
    b'\n{"report_generation": %d,\t"boot_id": "boot-1" }\n',
    b'{"boot_id": "boot\\u002d1", "report_generation": %d}',
    b'{"boot_id": "boot-1", "report_generation": %d.0}',
    b'{"boot_id": "boot-1", "report_generation": "%d"}',
    b'{"boot_id": "boot-1", "report_generation": -%d}',
    b'{"boot_id": "boot-1", "report_generation": 1%d}',
    b'{"boot_id": "boot-1", "report_generation": 1e%d}',
    b'{"boot_id": "boot-1", "report_generation": 99999999999999999999999%d}',
    b'{"boot_id": "boot-1", "report_generation": %d, "more": null}',
    b'{"boot_id": "boot-1", "report_generation": 7, "report_generation": %d}',
    b'{"boot_id": "boot-1", "": {}, "report_generation": %d}',
    b'{"boot_id": "boot:1", "report_generation": %d}',
    b'{"boot_id": "boot-2", "report_generation": %d}',
    b'{"boot_id": "boot-1\\u0000", "report_generation": %d}',
    b'{"boot_id": "boot-1\xff", "report_generation": %d}',
    b'{"boot_id": null, "report_generation": %d}',
    b'["boot-1", %d]',
    b'{"boot_id": "boot-1", "report_generation": %d',
    b"%d",
    b"NaN%d",
    b"",
]
HEADERS = [
    b"",
    b"Content-Type: application/json\r\n",
    b"Content-Type: text/plain\r\n",
    b"Content-Encoding: gzip\r\n",
    b"Content-Encoding: identity\r\n",
    EXPECTING,
    b"OpenStack-API-Version: placement 1.39\r\n",
    b"X-Auth-Token: other\r\n",
    b"Authorization: Bearer other\r\n",
    b"X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\n",
    b"X-Forwarded-For: 192.0.2.1\r\n",
]
PATHS = [
    "/v1/agents/{0}/alive",
    "/v1/agents/{0}/alive?a=1",
    "/v1/agents/{0}/alive?",
    "/v1/agents/{0}/aliv%65",
    "/v1/agents/{0}/alive/",
    "//v1/agents/{0}/alive",
    "/v1/agents/x/alive",
    "/v1/agents/00000000-0000-4000-8000-000000000000/alive",
    "/v1/agents/{0}%00/alive",
    "/v1/agents/{0}/starts/alive",
    "/v1/alive",
    "/alive",
]


@dataclass
class Fleet:
    """Machines in several states, and tokens that may or may not speak for the first one."""

    machines: list[Machine]
    tokens: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def fleet(native: Native) -> Fleet:
    """Return machines: one that offers, one that registered only, one that is new, one closed."""
    offering = Machine(native).offering()
    registered = Machine(native)
    assert registered.put().status == 200
    assert registered.register().status == 200
    new = Machine(native)
    assert new.put().status == 200
    closed = Machine(native).offering().decommissioned()
    roles = [native.token(role) for role in ("reader", "service", "operator", "admin")]
    spent = native.ask("POST", "/v1/tokens", {"name": "spent", "role": "operator"}).body
    assert native.ask("DELETE", f"/v1/tokens/{spent['id']}").status == 204
    machines = [offering, registered, new, closed]
    return Fleet(machines, [*(one.token for one in machines), *roles, spent["token"], "moorage_x"])


def answers(url: str, request: bytes) -> list[tuple[int, bytes, bytes]]:
    """Send a request on a connection that stays open; return what is answered, without chance.

    `100 Continue` is no answer: a server that has the body already may send it or omit it
    (RFC 9110, 10.1.1). The longer way sends it whenever a handler begins to read.
    """
    found = talk(url, request, LAST)
    if EXPECTING in request:
        found = [one for one in found if one.status != HTTPStatus.CONTINUE]
    return [_fixed(one) for one in found]


def _fixed(answer: Answer) -> tuple[int, bytes, bytes]:
    head = re.sub(rb"(?i)\r\n(content-length|date): [^\r]*", b"", answer.head)
    return answer.status, VARYING.sub(b"", head), VARYING.sub(b"", answer.body)


@settings(deadline=None)
@given(data=st.data())
def test_both_ways_answer_the_same(fleet: Fleet, data: st.DataObject) -> None:
    """A body with many spaces at its end is answered by a task; otherwise nothing differs."""
    usual = st.just(0)
    machine = fleet.machines[data.draw(usual | st.integers(0, len(fleet.machines) - 1))]
    token = data.draw(st.just(machine.token) | st.sampled_from(fleet.tokens))
    path = PATHS[data.draw(usual | st.integers(0, len(PATHS) - 1))].format(machine.uuid)
    if data.draw(st.booleans()) and "%" not in path:
        path = path.replace(machine.uuid, machine.uuid.upper())
    body = BODIES[data.draw(usual | st.integers(0, len(BODIES) - 1))]
    if b"%d" in body:
        body %= data.draw(st.just(machine.generation) | st.integers(0, 3))
    extra = HEADERS[data.draw(usual | st.integers(0, len(HEADERS) - 1))]
    version = data.draw(st.sampled_from(["1.1", "1.1", "1.1", "1.0"]))
    method = data.draw(st.sampled_from(["POST", "POST", "POST", "PUT", "HEAD"]))
    if method == "HEAD":  # the helper expects a body after a length
        method, body = "GET", b""
    head = f"{method} {path} HTTP/{version}\r\nX-Auth-Token: {token}\r\n".encode()
    at_once, by_task = both_ways(machine.native.url, head + HOST + extra, body)
    assert at_once == by_task


def both_ways(url: str, head: bytes, body: bytes) -> list[list[tuple[int, bytes, bytes]]]:
    """Send a request as it is, and with spaces after its body, which a task answers."""
    seen = []
    for padding in (0, PROMPT_BYTES_MAX if body else 0):
        sent = body + b" " * padding
        length = b"Content-Length: %d\r\n\r\n" % len(sent)
        seen.append(answers(url, head + length + sent))
    return seen


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_both_ways_answer_a_client_that_expects_100(fleet: Fleet, version: str) -> None:
    """Only one way sends `100 Continue` when the body is there already; the answers are equal."""
    machine = fleet.machines[0]
    head = f"POST /v1/agents/{machine.uuid}/alive HTTP/{version}\r\n".encode()
    head += f"X-Auth-Token: {machine.token}\r\n".encode() + HOST + EXPECTING
    at_once, by_task = both_ways(machine.native.url, head, BODIES[1] % machine.generation)
    assert at_once == by_task
    assert at_once[0][0] == 200


EVENTS: dict[str, Callable[[Machine], object]] = {
    "report": lambda machine: machine.report(),
    "register": lambda machine: machine.register(),
    "reboot": lambda machine: machine.register(boot_id="boot-2"),
    "desired": lambda machine: machine.operate("desired", resource_class=PAGES, amount=50),
    "drain": lambda machine: machine.operate("drain"),
    "resume": lambda machine: machine.operate("resume"),
    "expunge": lambda machine: machine.operate("expunge"),
    "decommission": lambda machine: machine.operate("decommission"),
    "create": lambda machine: machine.put(),
    "revoke": lambda machine: machine.native.ask("DELETE", f"/v1/tokens/{token_id(machine)}"),
}
"""What may happen between two signs of life; some are refused, depending on what was before."""


def token_id(machine: Machine) -> str:
    """Return the id of a machine's token."""
    listed = machine.native.ask("GET", "/v1/tokens?limit=1000").body["tokens"]
    return next((one["id"] for one in listed if one["name"] == machine.host), "none")


def sign_of_life(machine: Machine, token: str, body: bytes, more: bytes = b"") -> bytes:
    """Return a sign of life as agents send it again and again, unless there are more headers."""
    head = f"POST /v1/agents/{machine.uuid}/alive HTTP/1.1\r\nX-Auth-Token: {token}\r\n".encode()
    return head + HOST + more + b"Content-Length: %d\r\n\r\n" % len(body) + body


@settings(deadline=None, max_examples=40)
@given(events=st.lists(st.sampled_from(sorted(EVENTS)), max_size=6), own=st.booleans())
def test_known_bytes_are_answered_as_new_ones(native: Native, events: list[str], own: bool) -> None:
    """The server remembers how it understood a request, but never how it answered it."""
    machine = Machine(native).offering()
    token = machine.token if own else native.secret
    first = json.dumps(machine.alive_body()).encode()
    with Wire(native.url) as known, Wire(native.url) as parsed:
        for _ in range(3):
            assert known.ask(sign_of_life(machine, token, first)).status == 200
        for number, event in enumerate(events):
            EVENTS[event](machine)
            for body in (first, json.dumps(machine.alive_body()).encode()):
                again = known.ask(sign_of_life(machine, token, body))
                new = sign_of_life(machine, token, body, b"X-Number: %d\r\n" % number)
                assert _fixed(again) == _fixed(parsed.ask(new))


def test_known_bytes_on_another_connection(tmp_path: Path) -> None:
    """Each connection is checked: an agent's token must not come over a network in plain text."""

    async def scenario(one: Running) -> None:
        await machines.ready(one.service.fleet, 1)
        scope = {"agent": [machines.agent_id(1)]}
        secret, _ = await one.service.access.create("m", "agent", by=TESTER, scope=scope)
        assert await one.service.access.find(secret) is not None
        recognize = TokenAuthenticator(one.service.access).recognize
        face = PromptFace(one.service, recognize, Limits(), plain_agents=False)
        request: dict[str, Any] = {
            "method": "POST",
            "path": f"/v1/agents/{machines.agent_id(1)}/alive",
            "query_string": b"",
            "headers": [(b"x-auth-token", secret.encode())],
        }
        answer = face.prompt(request, b'{"boot_id": "boot-1", "report_generation": 1}')
        assert answer is not None
        assert answer("http", "127.0.0.1") is not None
        assert answer("https", "192.0.2.1") is not None
        assert answer("http", "192.0.2.1") is None
        assert answer("http", "") is None
        assert secret not in repr(answer)

    play(tmp_path, scenario)


@given(
    kind=st.sampled_from([AliveRequest, ReportRequest]),
    raw=st.sampled_from(BODIES).map(lambda body: body.replace(b"%d", b"1"))
    | st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=False) | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(
                    ["boot_id", "report_generation", "actual", "phase", "failures", "x"]
                ),
                inner,
            )
        ),
    ).map(lambda value: json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")),
)
def test_plain_bodies(kind: type[Any], raw: bytes) -> None:
    """What the short way decodes, the longer way decodes to the same."""
    decoded = plain_decode(raw, kind)
    try:
        expected = body_decode(raw, kind)
    except RefusalError:
        expected = None
    assert decoded is None or decoded == expected


def test_routes_with_a_prompt_handler() -> None:
    """Only those that the access log omits if they succeed, and that always answer 200."""
    prompt = [route for route in ROUTES if route.prompt is not None]
    assert prompt
    for route in prompt:
        assert route.role is not None and route.body is not None
        operation = route.operation
        assert operation.routine and not operation.content.bulk
        assert (operation.content.status, operation.content.also) == (200, ())
