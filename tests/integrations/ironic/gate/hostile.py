"""Requests that two programs could understand in two ways. Standard library only."""

PROVISION = b"/v1/nodes/node-1/states/provision"
BODY = b'{"target": "manage"}'
JSON = b"Content-Type: application/json\r\nX-OpenStack-Ironic-API-Version: 1.90\r\n"


def _put(target: bytes = PROVISION, lines: bytes = b"", body: bytes = BODY) -> bytes:
    head = b"PUT " + target + b" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + JSON
    return head + (lines or b"Content-Length: %d\r\n" % len(body)) + b"\r\n" + body


CHUNKED = b"Transfer-Encoding: chunked\r\n"
SIZE = b"Content-Length: %d\r\n" % len(BODY)
PIECES = b"14\r\n" + BODY + b"\r\n0\r\n\r\n"

HOSTILE = {
    "two lengths": _put(lines=SIZE + SIZE),
    "two lengths in one": _put(lines=b"Content-Length: 20, 20\r\n"),
    "a signed length": _put(lines=b"Content-Length: +20\r\n"),
    "a length in hexadecimal": _put(lines=b"Content-Length: 0x14\r\n"),
    "a length and pieces": _put(lines=SIZE + CHUNKED, body=PIECES),
    "pieces and a length": _put(lines=CHUNKED + SIZE, body=PIECES),
    "an unknown coding": _put(lines=b"Transfer-Encoding: xchunked\r\n", body=PIECES),
    "two codings": _put(lines=CHUNKED + b"Transfer-Encoding: identity\r\n", body=PIECES),
    "a coding before pieces": _put(lines=b"Transfer-Encoding: gzip, chunked\r\n", body=PIECES),
    "a coding with a tab": _put(lines=b"Transfer-Encoding:\x0bchunked\r\n", body=PIECES),
    "a piece with a bad size": _put(lines=CHUNKED, body=b"zz\r\n" + BODY + b"\r\n0\r\n\r\n"),
    "a piece with a negative size": _put(lines=CHUNKED, body=b"-14\r\n" + BODY + b"\r\n0\r\n\r\n"),
    "a piece that is too long": _put(lines=CHUNKED, body=b"13\r\n" + BODY + b"\r\n0\r\n\r\n"),
    "a folded header": _put(lines=SIZE + b"X-A: b\r\n c\r\n"),
    "a folded first header": _put(lines=b" X: y\r\n" + SIZE),
    "NUL": _put(lines=SIZE + b"X-A: b\x00c\r\n"),
    "a carriage return": _put(lines=SIZE + b"X-A: b\rX-B: c\r\n"),
    "space before the colon": _put(lines=b"Content-Length : 20\r\n"),
    "two hosts": _put(lines=SIZE + b"Host: b\r\n"),
    "no host": b"PUT " + PROVISION + b" HTTP/1.1\r\n" + JSON + SIZE + b"\r\n" + BODY,
    "an underscore": _put(lines=b"Content_Length: 20\r\n"),
    "another path": _put(lines=SIZE + b"PATH_INFO: /v1/nodes/node-2/states/provision\r\n"),
    "a part of the path": _put(lines=SIZE + b"SCRIPT_NAME: /v1\r\n"),
    "a charset within quotes": _put(lines=SIZE).replace(
        b"/json", b'/json; x="; charset=utf-7;"; charset=utf-8'
    ),
    "another protocol": _put(lines=SIZE + b"Connection: upgrade\r\nUpgrade: websocket\r\n"),
    "a new version": _put().replace(b"HTTP/1.1", b"HTTP/2.0"),
    "an old version": _put().replace(b" HTTP/1.1", b""),
    "a small method": _put().replace(b"PUT ", b"put ", 1),
    "a strange method": _put().replace(b"PUT ", b"P\x00UT ", 1),
    "another server's address": _put(b"http://other" + PROVISION),
    "only a server": _put(b"other:80").replace(b"PUT", b"CONNECT", 1),
    "no path": _put(b"*"),
    "no slash": _put(PROVISION[1:]),
    "a space": _put(PROVISION + b" x"),
    "a tab": _put(PROVISION + b"\tx"),
    "two slashes": _put(b"//v1/nodes/node-1/states/provision"),
    "two slashes within": _put(b"/v1/nodes//node-1/states/provision"),
    "an encoded slash": _put(b"/v1/nodes/node-1/states%2fprovision"),
    "a slash encoded twice": _put(b"/v1/nodes/node-1/states%252fprovision"),
    "a backslash": _put(b"/v1/nodes/node-1/states\\provision"),
    "a parent": _put(b"/v1/nodes/node-1/x/../states/provision"),
    "an encoded parent": _put(b"/v1/nodes/node-1/x/%2e%2e/states/provision"),
    "the same folder": _put(b"/v1/nodes/node-1/./states/provision"),
    "a parameter of the path": _put(b"/v1/nodes/node-1/states/provision;x=1"),
    "a fragment": _put(b"/v1/nodes/node-1/states/provision#x"),
    "a fragment in the query": _put(PROVISION + b"?target=manage#x", body=b""),
    "an encoded fragment": _put(PROVISION + b"%23x"),
    "an encoded query": _put(PROVISION + b"%3ftarget=manage", body=b""),
    "a verb with more behind it": _put(body=b'{"target": "manage#"}'),
    "large letters": _put(b"/v1/Nodes/node-1/States/Provision"),
    "a compressed body": _put(lines=SIZE + b"Content-Encoding: gzip\r\n"),
    "perhaps a compressed body": _put(lines=SIZE + b"Content-Encoding: identity, gzip\r\n"),
    "two protocols": _put(lines=SIZE + b"Connection: upgrade\r\nUpgrade: h2c, websocket\r\n"),
    "a type that is not ASCII": _put(lines=SIZE).replace(b"/json", b"/j\xc5\xbfon"),
    "a coding that is not ASCII": _put(
        lines=b"Transfer-Encoding: chun\xe2\x84\xaaed\r\n", body=PIECES
    ),
    "letters in no code": _put(lines=SIZE + b"X-User: J\xfcrgen\r\n"),
    "two types": _put(lines=SIZE + b"Content-Type: text/plain\r\n"),
    "another method": _put(lines=SIZE + b"X-HTTP-Method-Override: PUT\r\n").replace(
        b"PUT", b"POST", 1
    ),
    "an original address": _put(b"/v1/nodes", lines=SIZE + b"X-Original-URL: /v1/ports\r\n"),
    "an original method": _put(lines=SIZE + b"X-HTTP-Method-Override: POST\r\n"),
    "an encoded end": _put(b"/v1/nodes/node-1/states/provision%00"),
    "letters that are not ASCII": _put(b"/v1/nodes/node-1/states/provision\xc3\xa9"),
    "an unfinished code": _put(b"/v1/nodes/node-1/states/provision%"),
    "a method in the query": _put(PROVISION + b"?_method=put").replace(b"PUT", b"POST", 1),
    "a method in a form": (
        b"POST " + PROVISION + b" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
        b"Content-Type: application/x-www-form-urlencoded\r\n"
        b"X-OpenStack-Ironic-API-Version: 1.90\r\n"
        b"Content-Length: 25\r\n\r\n_method=put&target=manage"
    ),
}
"""Each would be a request for a provision state if it were understood in one of its ways."""
