"""Every response of Boskos, byte for byte: status, headers, body.

Only the reasons why JSON is refused are Moorage's own.
"""

import json
import re

import pytest

from tests.faces.boskos.boskos_server import (
    Answer,
    BoskosServer,
    empty_answer,
    error_answer,
    http_request,
    parse_answer,
    read_all,
    success_answer,
)

POSTS = ("/acquire", "/acquirebystate", "/release", "/reset", "/update")
SET = "all of them must be set in the request."
AGAIN = "try again later."

MISSING = {
    "/acquire": "Bad request: Type: {type}, state: {state}, dest: {dest}, owner: {owner}, " + SET,
    "/acquirebystate": "state: {state}, dest: {dest}, owner: {owner}, names: {names} - " + SET,
    "/release": "Name: {name}, dest: {dest}, owner: {owner}, " + SET,
    "/reset": "Type: {type}, state: {state}, expire: {expire}, dest: {dest}, " + SET,
    "/update": "Name: {name}, owner: {owner}, state : {state}, " + SET,
}


@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_other_methods(boskos: BoskosServer, path: str, method: str) -> None:
    """Only POST is accepted; the error of acquirebystate names acquire."""
    named = path.replace("bystate", "")
    expected = error_answer(405, f"Method {method}, {named} only accepts POST.")
    assert boskos.call(method, path) == expected


def test_head(boskos: BoskosServer) -> None:
    """HEAD is refused like other methods, with the length of a body that is not sent."""
    full = error_answer(405, "Method HEAD, /acquire only accepts POST.")
    assert boskos.call("HEAD", "/acquire", None) == Answer(405, full.headers, "")
    metric = error_answer(405, "/metric only accepts GET")
    assert boskos.call("HEAD", "/metric?type=t0", None) == Answer(405, metric.headers, "")
    assert boskos.call("HEAD", "/", None) == Answer(200, {}, "")


@pytest.mark.parametrize("path", MISSING)
def test_missing_arguments(boskos: BoskosServer, path: str) -> None:
    """No argument may be missing or empty; the error repeats those that were sent."""
    names = re.findall(r"{(\w+)}", MISSING[path])
    for missing in [*names, None]:
        given = {name: "" if name == missing or missing is None else f"v-{name}" for name in names}
        for sent in (given, {name: value for name, value in given.items() if value}):
            assert boskos.post(path, **sent) == error_answer(400, MISSING[path].format(**given))


@pytest.mark.parametrize("path", ["/", "/acquire/", "/metrics", "/healthz", "/v1/leases", "/a/b"])
@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
def test_other_paths(boskos: BoskosServer, path: str, method: str) -> None:
    """Every other path is answered with 200 and no body."""
    assert boskos.call(method, path) == empty_answer()


@pytest.mark.parametrize(
    "header",
    ["Origin: http://a", "Origin: null", "Sec-Fetch-Site: Cross-Site", "Sec-Fetch-Site: same-site"],
)
@pytest.mark.parametrize("path", ["/acquire", "/reset", "/release", "/lease/release", "/x"])
def test_web_pages_are_refused(boskos: BoskosServer, path: str, header: str) -> None:
    """A web page cannot act through its reader's browser; other clients are not affected."""
    answer = boskos.call("POST", f"{path}?name=x&dest=free&owner=o", b"", header)
    assert answer == error_answer(403, "Requests of web pages are refused here.")


def test_a_web_page_cannot_release(boskos: BoskosServer) -> None:
    """A refused request of a page changes nothing; the same request of a program does."""
    kind, _ = boskos.new_type()
    name = boskos.acquire(kind)
    target = f"/release?name={name}&dest=free&owner=me"
    assert boskos.call("POST", target, b"", "Origin: https://example.org").status == 403
    assert boskos.post("/update", name=str(name), owner="me", state="busy").status == 200
    assert boskos.call("POST", target, b"", "Sec-Fetch-Site: none", "User-Agent: x").status == 200


def test_paths_that_are_not_clean(boskos: BoskosServer) -> None:
    """A path that is not clean is redirected to the clean one, with a body for GET."""
    moved = {"location": "/acquire?type=a&state=b", "content-length": "0"}
    assert boskos.call("POST", "//acquire?type=a&state=b") == Answer(301, moved, "")
    for path, to in (("//", "/"), ("/a/../b", "/b"), ("/a//b/", "/a/b/"), ("/x/.", "/x")):
        body = f'<a href="{to}">Moved Permanently</a>.\n\n'
        headers = {
            "location": to,
            "content-type": "text/html; charset=utf-8",
            "content-length": str(len(body)),
        }
        assert boskos.call("GET", path) == Answer(301, headers, body)


def test_acquire(boskos: BoskosServer) -> None:
    """The resource is JSON without a newline, sent as plain text; then none is available."""
    kind, names = boskos.new_type()
    taken = set()
    for _ in names:
        answer = boskos.post("/acquire", type=kind, state="free", dest="d<&>", owner="o é")
        found = json.loads(answer.body)
        taken.add(found["name"])
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", found["lastupdate"])
        expected = (
            f'{{"type":"{kind}","name":"{found["name"]}","state":"d\\u003c\\u0026\\u003e",'
            f'"owner":"o é","lastupdate":"{found["lastupdate"]}","userdata":{{}}}}'
        )
        assert answer == success_answer(expected)
    assert taken == set(names)
    none = error_answer(404, f"Acquire failed: no available resource {kind}, {AGAIN}")
    words = {"type": kind, "state": "free", "dest": "d", "owner": "o"}
    assert boskos.post("/acquire", **words) == none
    assert boskos.post("/acquire", **words, request_id="id") == none
    assert boskos.post("/acquire", **{**words, "state": "other"}) == none


def test_an_unknown_type(boskos: BoskosServer) -> None:
    """The name of an unknown type is quoted as Go does."""
    for kind, shown in (("no", '"no"'), ('a"b\\c\n', r'"a\"b\\c\n"'), ("\u200bé", '"\\u200bé"')):
        answer = boskos.post("/acquire", type=kind, state="free", dest="d", owner="o")
        assert answer == error_answer(404, f"Acquire failed: resource type {shown} does not exist")


def test_bytes_that_are_not_utf_8(boskos: BoskosServer) -> None:
    """Names are repeated byte for byte."""
    answer = boskos.call("POST", "/release?name=%ff&dest=%00")
    assert answer == error_answer(400, f"Name: \udcff, dest: \0, owner: , {SET}")
    answer = boskos.call("POST", "/acquire?type=%ff&state=s&dest=d&owner=o")
    assert answer == error_answer(404, 'Acquire failed: resource type "\\xff" does not exist')


def test_acquire_by_state(boskos: BoskosServer) -> None:
    """The resources are a list with a newline; if a name is missing, the error names the state."""
    kind, names = boskos.new_type()
    first, second, _ = names
    words = {"state": "free", "dest": "d", "owner": "o"}
    answer = boskos.post("/acquirebystate", **words, names=f"{first},{second}")
    found = json.loads(answer.body)
    assert sorted(one["name"] for one in found) == [first, second]
    rows = ",".join(
        f'{{"type":"{kind}","name":"{one["name"]}","state":"d","owner":"o",'
        f'"lastupdate":"{one["lastupdate"]}","userdata":{{}}}}'
        for one in found
    )
    assert answer == success_answer(f"[{rows}]\n")
    none = error_answer(404, f"AcquireByState: no available resource free, {AGAIN}")
    assert boskos.post("/acquirebystate", **words, names=first) == none
    assert boskos.post("/acquirebystate", **words, names="nobody") == none
    assert boskos.post("/acquirebystate", **words, names=f" {names[2]}") == none


def test_release(boskos: BoskosServer) -> None:
    """Existence is checked before the owner; a success has no body."""
    kind, names = boskos.new_type()
    unknown = f"Done failed: nobody - d (from o): no available resource nobody, {AGAIN}"
    assert boskos.post("/release", name="nobody", dest="d", owner="o") == error_answer(404, unknown)
    free = f"Done failed: {names[0]} - d (from o): owner mismatch request by o, currently owned by "
    assert boskos.post("/release", name=names[0], dest="d", owner="o") == error_answer(401, free)
    taken = boskos.acquire(kind, "him")
    assert taken is not None
    other = (
        f"Done failed: {taken} - d (from o): owner mismatch request by o, currently owned by him"
    )
    assert boskos.post("/release", name=taken, dest="d", owner="o") == error_answer(401, other)
    assert boskos.post("/release", name=taken, dest="d", owner="him") == empty_answer()
    metric = f'{{"type":"{kind}","current":{{"d":1,"free":2}},"owner":{{"":3}}}}'
    assert boskos.call("GET", f"/metric?type={kind}") == success_answer(metric, "application/json")


def test_update(boskos: BoskosServer) -> None:
    """Existence, owner and state are checked in this order."""
    kind, _ = boskos.new_type()
    taken = boskos.acquire(kind, "o")
    assert taken is not None

    def update(name: str, owner: str, state: str) -> Answer:
        return boskos.post("/update", name=name, owner=owner, state=state)

    text = f"Update failed: nobody - busy (o): no available resource nobody, {AGAIN}"
    assert update("nobody", "o", "busy") == error_answer(404, text)
    text = f"Update failed: {taken} - x (me): owner mismatch request by me, currently owned by o"
    assert update(taken, "me", "x") == error_answer(401, text)
    text = f"Update failed: {taken} - x (o): state mismatch - expected busy, current x"
    assert update(taken, "o", "x") == error_answer(409, text)
    assert update(taken, "o", "busy") == empty_answer()


USER_DATA = (
    (b"", {}),
    (b"null", {}),
    (b'{"test":"old"}', {"test": "old"}),
    (b'{"more":"1","a<b":"\xc3\xa9"} and so on', {"test": "old", "more": "1", "a<b": "é"}),
    (b'{"test":"new","more":""}', {"test": "new", "a<b": "é"}),
    (b'{"test":null}', {"a<b": "é"}),
)


def test_user_data(boskos: BoskosServer) -> None:
    """User data are merged, kept after a release, and returned to the next holder."""
    kind, _ = boskos.new_type()
    for name in (boskos.acquire(kind, "other"), boskos.acquire(kind, "other")):
        assert name is not None
    for body, expected in USER_DATA:
        taken = boskos.acquire(kind, "o")
        assert taken is not None
        target = f"/update?name={taken}&owner=o&state=busy"
        assert boskos.call("POST", target, body, "Content-Type: application/json") == empty_answer()
        boskos.release(taken, "o")
        words = {"type": kind, "state": "free", "dest": "busy", "owner": "o"}
        answer = boskos.post("/acquire", **words)
        assert json.loads(answer.body)["userdata"] == expected
        assert list(json.loads(answer.body)["userdata"]) == sorted(expected)
        boskos.release(taken, "o")
    assert '"a\\u003cb":"é"' in answer.body or not expected


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'{"a":1}', "every value must be a string"),
        (b"[]", "the body must be a JSON object"),
        (b"garbage", "malformed JSON: Expecting value: line 1 column 1 (char 0)"),
        (b'{"a":', "malformed JSON: Expecting value: line 1 column 6 (char 5)"),
    ],
)
def test_bad_user_data(boskos: BoskosServer, body: bytes, text: str) -> None:
    """A body that is not a map of strings is refused before any other check."""
    target = "/update?name=nobody&owner=o&state=s"
    assert boskos.call("POST", target, body) == error_answer(400, text)
    length = f"{len(body):x}".encode()
    pieces = length + b"\r\n" + body + b"\r\n0\r\n\r\n"
    answer = boskos.call("POST", target, pieces, "Transfer-Encoding: chunked")
    assert answer == error_answer(400, text)


def test_reset(boskos: BoskosServer) -> None:
    """Type, state and age must match; the response lists the owners, sorted by name."""
    kind, names = boskos.new_type()
    other = boskos.new_type().kind
    for owner in ("o1", "o2"):
        boskos.acquire(kind, owner)
    boskos.acquire(other, "o3")

    def reset(expire: str, state: str = "busy", of: str = kind) -> Answer:
        return boskos.post("/reset", type=of, state=state, expire=expire, dest="d")

    nothing = success_answer("{}")
    assert reset("1h") == reset("0", "free") == reset("0", "other") == nothing
    assert reset("0", of="nobody") == nothing
    for wrong, text in (
        ("woooo", 'time: invalid duration "woooo"'),
        ("10", 'time: missing unit in duration "10"'),
        ("1x", 'time: unknown unit "x" in duration "1x"'),
    ):
        assert reset(wrong) == error_answer(400, text)
    assert reset("-1h") == success_answer(f'{{"{names[0]}":"o1","{names[1]}":"o2"}}')
    assert reset("0") == nothing
    assert reset("0", of=other) == success_answer(f'{{"{other}-a":"o3"}}')
    metric = f'{{"type":"{kind}","current":{{"d":2,"free":1}},"owner":{{"":3}}}}'
    assert boskos.call("GET", f"/metric?type={kind}").body == metric


def test_metric(boskos: BoskosServer) -> None:
    """Only GET is accepted, for a type that has resources."""
    assert boskos.call("POST", "/metric?type=t0") == error_answer(405, "/metric only accepts GET")
    assert boskos.call("GET", "/metric") == error_answer(400, "Type must be set in the request.")
    unknown = error_answer(404, f"no available resource nobody, {AGAIN}")
    assert boskos.call("GET", "/metric?type=nobody", None) == unknown


def test_queries_as_go_reads_them(boskos: BoskosServer) -> None:
    """The first value counts, semicolons make a pair invalid, forms in the body are ignored."""
    form = ("Content-Type: application/x-www-form-urlencoded",)
    answer = boskos.call("POST", "/release?name=a&name=b&dest=x;y", b"owner=o&dest=d", *form)
    assert answer == error_answer(400, f"Name: a, dest: , owner: , {SET}")
    answer = boskos.call("POST", "/release?name=a+b%20c&dest=%zz&&owner")
    assert answer == error_answer(400, f"Name: a b c, dest: , owner: , {SET}")


def test_a_connection_serves_many_requests(boskos: BoskosServer) -> None:
    """Connections are kept open; each response has a length."""
    kind, names = boskos.new_type()
    target = f"/acquire?type={kind}&state=free&dest=d&owner=o"
    with boskos.connect() as connection:
        for _ in range(3):
            connection.sendall(http_request("POST", target, b""))
            head = b""
            while b"\r\n\r\n" not in head:
                head += connection.recv(65536)
            answer = parse_answer(head)
            assert answer.status == 200
            assert len(answer.body) == int(answer.headers["content-length"])
        connection.sendall(http_request("POST", target, b"", "Connection: close"))
        assert parse_answer(read_all(connection)).status == 404
    assert len(names) == 3


def test_any_credentials_are_accepted(boskos: BoskosServer) -> None:
    """Any HTTP Basic credentials are accepted if there is no password file."""
    answer = boskos.call("GET", "/metric?type=t59", None, "Authorization: Basic dXNlcjpwYXNz")
    assert answer.status == 200
