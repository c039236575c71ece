"""Every answer of Boskos, byte for byte: status, headers, body.

Only the reasons why JSON is refused are ours.
"""

import json
import re

import pytest

from tests.faces.boskos.ground import (
    Answer,
    Ground,
    answer_of,
    empty,
    received,
    refused,
    said,
    spelled,
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
def test_other_methods(there: Ground, path: str, method: str) -> None:
    """Only POST; acquirebystate speaks of acquire."""
    named = path.replace("bystate", "")
    expected = refused(405, f"Method {method}, {named} only accepts POST.")
    assert there.call(method, path) == expected


def test_head(there: Ground) -> None:
    """HEAD is another method, too; its answer has no body, and the length of the one it would."""
    full = refused(405, "Method HEAD, /acquire only accepts POST.")
    assert there.call("HEAD", "/acquire", None) == Answer(405, full.headers, "")
    metric = refused(405, "/metric only accepts GET")
    assert there.call("HEAD", "/metric?type=t0", None) == Answer(405, metric.headers, "")
    assert there.call("HEAD", "/", None) == Answer(200, {}, "")


@pytest.mark.parametrize("path", MISSING)
def test_missing_arguments(there: Ground, path: str) -> None:
    """Each argument must be there and not be empty; the answer repeats what was there."""
    names = re.findall(r"{(\w+)}", MISSING[path])
    for missing in [*names, None]:
        given = {name: "" if name == missing or missing is None else f"v-{name}" for name in names}
        for sent in (given, {name: value for name, value in given.items() if value}):
            assert there.post(path, **sent) == refused(400, MISSING[path].format(**given))


@pytest.mark.parametrize("path", ["/", "/acquire/", "/metrics", "/healthz", "/v1/leases", "/a/b"])
@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
def test_other_paths(there: Ground, path: str, method: str) -> None:
    """Whatever else is asked is answered 200, with nothing."""
    assert there.call(method, path) == empty()


@pytest.mark.parametrize(
    "header",
    ["Origin: http://a", "Origin: null", "Sec-Fetch-Site: Cross-Site", "Sec-Fetch-Site: same-site"],
)
@pytest.mark.parametrize("path", ["/acquire", "/reset", "/release", "/lease/release", "/x"])
def test_web_pages_are_refused(there: Ground, path: str, header: str) -> None:
    """A page that somebody reads cannot act through their browser; programs are not affected."""
    answer = there.call("POST", f"{path}?name=x&dest=free&owner=o", b"", header)
    assert answer == refused(403, "Requests of web pages are refused here.")


def test_a_page_takes_nothing_away(there: Ground) -> None:
    """What a page sends changes nothing, a program's request does."""
    kind, _ = there.own()
    name = there.acquire(kind)
    target = f"/release?name={name}&dest=free&owner=me"
    assert there.call("POST", target, b"", "Origin: https://example.org").status == 403
    assert there.post("/update", name=str(name), owner="me", state="busy").status == 200
    assert there.call("POST", target, b"", "Sec-Fetch-Site: none", "User-Agent: x").status == 200


def test_untidy_paths(there: Ground) -> None:
    """Paths are tidied up by a redirect, which is written out for GET."""
    moved = {"location": "/acquire?type=a&state=b", "content-length": "0"}
    assert there.call("POST", "//acquire?type=a&state=b") == Answer(301, moved, "")
    for path, to in (("//", "/"), ("/a/../b", "/b"), ("/a//b/", "/a/b/"), ("/x/.", "/x")):
        body = f'<a href="{to}">Moved Permanently</a>.\n\n'
        headers = {
            "location": to,
            "content-type": "text/html; charset=utf-8",
            "content-length": str(len(body)),
        }
        assert there.call("GET", path) == Answer(301, headers, body)


def test_acquire(there: Ground) -> None:
    """A resource as JSON without a newline, told to be plain text; then there is none left."""
    kind, names = there.own()
    taken = set()
    for _ in names:
        answer = there.post("/acquire", type=kind, state="free", dest="d<&>", owner="o é")
        found = json.loads(answer.body)
        taken.add(found["name"])
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", found["lastupdate"])
        expected = (
            f'{{"type":"{kind}","name":"{found["name"]}","state":"d\\u003c\\u0026\\u003e",'
            f'"owner":"o é","lastupdate":"{found["lastupdate"]}","userdata":{{}}}}'
        )
        assert answer == said(expected)
    assert taken == set(names)
    none = refused(404, f"Acquire failed: no available resource {kind}, {AGAIN}")
    words = {"type": kind, "state": "free", "dest": "d", "owner": "o"}
    assert there.post("/acquire", **words) == none
    assert there.post("/acquire", **words, request_id="id") == none
    assert there.post("/acquire", **{**words, "state": "other"}) == none


def test_no_such_type(there: Ground) -> None:
    """A type that there is not is quoted as Go does."""
    for kind, shown in (("no", '"no"'), ('a"b\\c\n', r'"a\"b\\c\n"'), ("\u200bé", '"\\u200bé"')):
        answer = there.post("/acquire", type=kind, state="free", dest="d", owner="o")
        assert answer == refused(404, f"Acquire failed: resource type {shown} does not exist")


def test_bytes_that_are_no_text(there: Ground) -> None:
    """What is repeated is repeated byte for byte."""
    answer = there.call("POST", "/release?name=%ff&dest=%00")
    assert answer == refused(400, f"Name: \udcff, dest: \0, owner: , {SET}")
    answer = there.call("POST", "/acquire?type=%ff&state=s&dest=d&owner=o")
    assert answer == refused(404, 'Acquire failed: resource type "\\xff" does not exist')


def test_acquire_by_state(there: Ground) -> None:
    """Several as a list and a newline; some name missing: the state is what is not available."""
    kind, names = there.own()
    first, second, _ = names
    words = {"state": "free", "dest": "d", "owner": "o"}
    answer = there.post("/acquirebystate", **words, names=f"{first},{second}")
    found = json.loads(answer.body)
    assert sorted(one["name"] for one in found) == [first, second]
    rows = ",".join(
        f'{{"type":"{kind}","name":"{one["name"]}","state":"d","owner":"o",'
        f'"lastupdate":"{one["lastupdate"]}","userdata":{{}}}}'
        for one in found
    )
    assert answer == said(f"[{rows}]\n")
    none = refused(404, f"AcquireByState: no available resource free, {AGAIN}")
    assert there.post("/acquirebystate", **words, names=first) == none
    assert there.post("/acquirebystate", **words, names="nobody") == none
    assert there.post("/acquirebystate", **words, names=f" {names[2]}") == none


def test_release(there: Ground) -> None:
    """Existence and owner are looked at, in this order; a success says nothing."""
    kind, names = there.own()
    unknown = f"Done failed: nobody - d (from o): no available resource nobody, {AGAIN}"
    assert there.post("/release", name="nobody", dest="d", owner="o") == refused(404, unknown)
    free = f"Done failed: {names[0]} - d (from o): owner mismatch request by o, currently owned by "
    assert there.post("/release", name=names[0], dest="d", owner="o") == refused(401, free)
    taken = there.acquire(kind, "him")
    assert taken is not None
    other = (
        f"Done failed: {taken} - d (from o): owner mismatch request by o, currently owned by him"
    )
    assert there.post("/release", name=taken, dest="d", owner="o") == refused(401, other)
    assert there.post("/release", name=taken, dest="d", owner="him") == empty()
    metric = f'{{"type":"{kind}","current":{{"d":1,"free":2}},"owner":{{"":3}}}}'
    assert there.call("GET", f"/metric?type={kind}") == said(metric, "application/json")


def test_update(there: Ground) -> None:
    """Existence, owner and state are looked at, in this order."""
    kind, _ = there.own()
    taken = there.acquire(kind, "o")
    assert taken is not None

    def update(name: str, owner: str, state: str) -> Answer:
        return there.post("/update", name=name, owner=owner, state=state)

    text = f"Update failed: nobody - busy (o): no available resource nobody, {AGAIN}"
    assert update("nobody", "o", "busy") == refused(404, text)
    text = f"Update failed: {taken} - x (me): owner mismatch request by me, currently owned by o"
    assert update(taken, "me", "x") == refused(401, text)
    text = f"Update failed: {taken} - x (o): state mismatch - expected busy, current x"
    assert update(taken, "o", "x") == refused(409, text)
    assert update(taken, "o", "busy") == empty()


USER_DATA = (
    (b"", {}),
    (b"null", {}),
    (b'{"test":"old"}', {"test": "old"}),
    (b'{"more":"1","a<b":"\xc3\xa9"} and so on', {"test": "old", "more": "1", "a<b": "é"}),
    (b'{"test":"new","more":""}', {"test": "new", "a<b": "é"}),
    (b'{"test":null}', {"a<b": "é"}),
)


def test_user_data(there: Ground) -> None:
    """User data are merged, outlive a release, and are told to whoever acquires next."""
    kind, _ = there.own()
    for name in (there.acquire(kind, "other"), there.acquire(kind, "other")):
        assert name is not None
    for body, expected in USER_DATA:
        taken = there.acquire(kind, "o")
        assert taken is not None
        target = f"/update?name={taken}&owner=o&state=busy"
        assert there.call("POST", target, body, "Content-Type: application/json") == empty()
        there.release(taken, "o")
        words = {"type": kind, "state": "free", "dest": "busy", "owner": "o"}
        answer = there.post("/acquire", **words)
        assert json.loads(answer.body)["userdata"] == expected
        assert list(json.loads(answer.body)["userdata"]) == sorted(expected)
        there.release(taken, "o")
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
def test_bad_user_data(there: Ground, body: bytes, text: str) -> None:
    """A body that is no map of strings is refused before anything is looked at."""
    target = "/update?name=nobody&owner=o&state=s"
    assert there.call("POST", target, body) == refused(400, text)
    length = f"{len(body):x}".encode()
    pieces = length + b"\r\n" + body + b"\r\n0\r\n\r\n"
    answer = there.call("POST", target, pieces, "Transfer-Encoding: chunked")
    assert answer == refused(400, text)


def test_reset(there: Ground) -> None:
    """Type, state, owner and age must fit; the answer tells whose they were, sorted by name."""
    kind, names = there.own()
    other = there.own().kind
    for owner in ("o1", "o2"):
        there.acquire(kind, owner)
    there.acquire(other, "o3")

    def reset(expire: str, state: str = "busy", of: str = kind) -> Answer:
        return there.post("/reset", type=of, state=state, expire=expire, dest="d")

    nothing = said("{}")
    assert reset("1h") == reset("0", "free") == reset("0", "other") == nothing
    assert reset("0", of="nobody") == nothing
    for wrong, text in (
        ("woooo", 'time: invalid duration "woooo"'),
        ("10", 'time: missing unit in duration "10"'),
        ("1x", 'time: unknown unit "x" in duration "1x"'),
    ):
        assert reset(wrong) == refused(400, text)
    assert reset("-1h") == said(f'{{"{names[0]}":"o1","{names[1]}":"o2"}}')
    assert reset("0") == nothing
    assert reset("0", of=other) == said(f'{{"{other}-a":"o3"}}')
    metric = f'{{"type":"{kind}","current":{{"d":2,"free":1}},"owner":{{"":3}}}}'
    assert there.call("GET", f"/metric?type={kind}").body == metric


def test_metric(there: Ground) -> None:
    """Only GET, of a type that has resources."""
    assert there.call("POST", "/metric?type=t0") == refused(405, "/metric only accepts GET")
    assert there.call("GET", "/metric") == refused(400, "Type must be set in the request.")
    unknown = refused(404, f"no available resource nobody, {AGAIN}")
    assert there.call("GET", "/metric?type=nobody", None) == unknown


def test_queries_as_go_reads_them(there: Ground) -> None:
    """The first value counts, semicolons void a pair, forms in a body are not looked at."""
    form = ("Content-Type: application/x-www-form-urlencoded",)
    answer = there.call("POST", "/release?name=a&name=b&dest=x;y", b"owner=o&dest=d", *form)
    assert answer == refused(400, f"Name: a, dest: , owner: , {SET}")
    answer = there.call("POST", "/release?name=a+b%20c&dest=%zz&&owner")
    assert answer == refused(400, f"Name: a b c, dest: , owner: , {SET}")


def test_one_connection_for_many(there: Ground) -> None:
    """Connections are kept; each answer tells its length."""
    kind, names = there.own()
    target = f"/acquire?type={kind}&state=free&dest=d&owner=o"
    with there.connect() as connection:
        for _ in range(3):
            connection.sendall(spelled("POST", target, b""))
            head = b""
            while b"\r\n\r\n" not in head:
                head += connection.recv(65536)
            answer = answer_of(head)
            assert answer.status == 200
            assert len(answer.body) == int(answer.headers["content-length"])
        connection.sendall(spelled("POST", target, b"", "Connection: close"))
        assert answer_of(received(connection)).status == 404
    assert len(names) == 3


def test_credentials_are_not_looked_at(there: Ground) -> None:
    """Clients may send HTTP Basic credentials; any will do."""
    answer = there.call("GET", "/metric?type=t59", None, "Authorization: Basic dXNlcjpwYXNz")
    assert answer.status == 200
