"""Disguises of a request for a provision state: spellings that some server undoes.

Standard library only: `make baremetal` sends them through a gate and nginx to a real Ironic.
"""

import random
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, unquote

from moorage.integrations.ironic.provision_request import FORM, JSON

PIECES: Final = (
    *("#", "#x", "#/v1", "?", "??", "&", ";", ";x=1", ":", "+", "=", "@", "*", "~", "|", "[", '"'),
    *("%23", "%23x", "%2523", "%3f", "%3F", "%253f", "%3b", "%253b", "%26", "%00", "%2500", "%09"),
    *("%0a", "%0d%0a", "%20", "%2520", "%c0%af", "%ef%bc%8f", "%e2%80%8b", "%5c", "%255c", "%7f"),
    *("/", "//", "/./", "/x/../", "%2f", "%252f", "/%2e/", "/x/%2e%2e/", "/..;/", "\\", "/.;x/"),
    *(".json", ".xml", ".html", "%2ejson", "/manage", "/x", "%", "%zz", "%u002f", "\t", "\x0b"),
    *("?x", "?target=abort", "&target=abort", "&target=", "?target", "&Target=abort"),
    *("&target%00=abort", "&target[]=abort", "&target%20=abort", "&+target=abort", ";target=abort"),
    *("?_method=put", "&_method=get", "?node_ident=node-9", "HTTP/1.1", "%20HTTP/1.1%0d%0aX:"),
    *("\u00e9", "\u2215", "\uff0f", "\u017f", "\xa0", "\x85", "\xff"),
)

BODIES: Final = (
    (None, b""),
    (JSON, b"%s"),
    (FORM, b"target=%v"),
    (FORM, b"target=abort&target=%v"),
    (FORM, b"x=1;target=%v"),
    (JSON, b'{"target": "abort", "target": "%v"}'),
    (JSON, b'{"target": "%v"}garbage'),
    (JSON, b'\xef\xbb\xbf{"target": "%v"}'),
    (JSON, b'{"target": "%v#"}'),
    (JSON, b'{"target": "%v\\u0000"}'),
    (JSON, b'{"target": ["%v"]}'),
    (JSON + "; charset=utf-7", b'{"target": "abort", "x": "+ACI-,+ACI-target+ACI-:+ACI-%v"}'),
    (JSON + "; charset=utf-16", b"utf-16"),
    (JSON, b"utf-16"),
    ("application/json-patch+json", b"%s"),
    ("text/json", b"%s"),
    ("text/plain", b"%s"),
)
"""Types and bodies; `%v` is the verb, and `%s` a usual body."""

METHODS: Final = (*("PUT",) * 12, "put", "POST", "PATCH", "DELETE", "GET", "OPTIONS", "QUERY")

ADDRESSES: Final = (
    *("/v1/nodes/%n/states/provision",) * 4,
    "/v1/nodes/%n/states/provision?target=%v",
    "/v1/nodes/%n/states/provision?x=1&target=%v",
    "/v1/nodes/%n/states/provision/%v",
    "/v1/nodes/states/provision?node_ident=%n&target=%v",
    "/v1/chassis/nodes/%n/states/provision",
    "/v1/nodes/%n/states/provision.json",
    "/v1/nodes/%n?fields=states/provision",
    "/v1/nodes/%n/states",
)


@dataclass(frozen=True)
class Disguise:
    """A request as it is sent; `target` may have letters that no client sends."""

    method: str
    target: str
    content_type: str | None
    body: bytes

    def sent(self, extra: bytes = b"") -> bytes:
        """Return its bytes; the connection is closed afterwards. `extra`: more lines of headers."""
        head = f"{self.method} {self.target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
        if self.content_type is not None:
            head += f"Content-Type: {self.content_type}\r\n"
        if self.body:
            head += f"Content-Length: {len(self.body)}\r\n"
        version = "1.90" if ".json" in self.target else "1.95"
        head += f"X-OpenStack-Ironic-API-Version: {version}\r\n"
        return head.encode("utf-8", "surrogateescape") + extra + b"\r\n" + self.body


def disguises(seed: int, count: int, node: str, verb: str) -> Iterator[Disguise]:
    """Yield requests for a verb of a node, each disguised by up to three changes."""
    chance = random.Random(seed)
    for _ in range(count):
        target = chance.choice(ADDRESSES).replace("%n", node).replace("%v", verb)
        for _ in range(chance.randrange(4)):
            target = chance.choice((_inserted, _inserted, _encoded, _cased))(target, chance)
        plain = "target=" in target or target.endswith(f"/{verb}")
        kind, body = BODIES[0] if plain and chance.random() < 0.8 else chance.choice(BODIES)
        usual = b'{"target": "%s"}' % verb.encode()
        body = body.replace(b"%s", usual).replace(b"%v", verb.encode())
        if body == b"utf-16":
            body = usual.decode().encode("utf-16")
        yield Disguise(chance.choice(METHODS), target, kind, body)


def _inserted(target: str, chance: random.Random) -> str:
    at = chance.choice([len(target), chance.randrange(1, len(target) + 1)])
    if chance.random() < 0.4 and (cuts := [m.start() for m in re.finditer("/", target)][1:]):
        at = chance.choice(cuts)
        return target[:at] + chance.choice(PIECES) + target[at + chance.randrange(2) :]
    return target[:at] + chance.choice(PIECES) + target[at:]


def _encoded(target: str, chance: random.Random) -> str:
    at = chance.randrange(1, len(target))
    code = "".join(f"%{one:02x}" for one in target[at].encode("utf-8", "surrogateescape"))
    for _ in range(chance.randrange(3)):
        code = code.replace("%", "%25")
    return target[:at] + code + target[at + 1 :]


def _cased(target: str, chance: random.Random) -> str:
    return target.swapcase() if chance.random() < 0.2 else target.title()


UNDOINGS: Final[tuple[Callable[[str], str], ...]] = (
    lambda target: target.partition("#")[0],
    lambda target: unquote(target, "latin-1"),
    lambda target: unquote(target, "utf-8", "ignore"),
    lambda target: re.sub(r";[^/?]*", "", target),
    lambda target: target.replace("\\", "/"),
    lambda target: re.sub("/+", "/", target),
    lambda target: re.sub(r"/[^/]*[^/.][^/]*/\.\.(?=/)|/\.(?=/)", "", target),
    lambda target: target.casefold(),
    lambda target: re.split(r"[\s\0]", target, maxsplit=1)[0],
    lambda target: re.sub(r"[\t\r\n\0]", "", target),
    lambda target: unicodedata.normalize("NFKC", target),
    lambda target: target.replace("+", " "),
)
"""What a server or proxy may do with an address before it is understood."""

_PROVISION = re.compile(
    r"/v1/(?:chassis/)?nodes(?:/[^/?]+)?/states/provision(?:\.json)?(?:[/?].*)?"
)


def readings(target: str, depth: int = 3) -> set[str]:
    """Return how an address is read after up to that many undoings, one after the other."""
    found = fresh = {target}
    for _ in range(depth):
        fresh = {undo(one) for one in fresh for undo in UNDOINGS} - found
        found = found | fresh
    return found


def is_provision(read: str) -> bool:
    """Return whether Ironic takes an address, so read, for that of a provision state."""
    return _PROVISION.fullmatch(read) is not None


def verbs_of(read: str) -> set[str]:
    """Return the targets in the query of an address, as split at `&` or `;`."""
    query = read.partition("?")[2].replace(";", "&")
    pairs = parse_qsl(query, keep_blank_values=True)
    return {value for name, value in pairs if name == "target"}
