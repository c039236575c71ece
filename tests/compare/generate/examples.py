"""For each deliberate difference the smallest sequence of requests that shows it."""

from dataclasses import replace
from typing import Any

from tests.compare.generate.requests import NOTHING, VERSION, Ask, Generation, plain
from tests.compare.judge.defects import LEFT_BEHIND
from tests.e2e.support.fuzzer import AGGREGATES, CONSUMERS, PROVIDERS
from tests.e2e.support.hostile import Pairs, Raw

HOST, CHILD, SHARER = PROVIDERS[0], PROVIDERS[1], PROVIDERS[9]
CONSUMER = CONSUMERS[0]
CANDIDATES = "/allocation_candidates"


def with_header(ask: Ask, name: str, value: str) -> Ask:
    """Return the request with a header set."""
    others = tuple(pair for pair in ask.headers if pair[0] != name)
    return replace(ask, headers=(*others, (name, value)))


def provider(uuid: str = HOST, name: str = "host", parent: str | None = None, **more: Any) -> Ask:
    """Create a provider."""
    body = {"name": name, "uuid": uuid, **more}
    if parent is not None:
        body["parent_provider_uuid"] = parent
    return plain("POST", "/resource_providers", body=body)


def part(method: str, name: str, uuid: str = HOST, body: Any = NOTHING) -> Ask:
    """Request a subresource of a provider, such as `/inventories`."""
    path = f"/resource_providers/{uuid}{name}"
    return plain(method, path, body=body, template="/resource_providers/{provider}" + name)


def offers(uuid: str = HOST, **totals: int) -> Ask:
    """Replace the inventories of a provider."""
    inventories = {name: {"total": total} for name, total in totals.items()}
    body = {"resource_provider_generation": Generation(uuid), "inventories": inventories}
    return part("PUT", "/inventories", uuid, body)


def tagged(kind: str, names: list[str], uuid: str = HOST) -> Ask:
    """Replace the traits or aggregates of a provider."""
    body = {kind: names, "resource_provider_generation": Generation(uuid)}
    return part("PUT", f"/{kind}", uuid, body)


def claim(uuid: str = HOST, minor: int = 39, consumer: str = CONSUMER, **more: Any) -> Ask:
    """Claim one VCPU of a provider."""
    body: dict[str, Any] = {
        "allocations": {uuid: {"resources": {"VCPU": 1}}},
        "project_id": "project",
        "user_id": "user",
        "consumer_generation": Generation(consumer, consumer=True),
        "consumer_type": "INSTANCE",
    }
    path = f"/allocations/{consumer}"
    return plain("PUT", path, minor, body | more, template="/allocations/{consumer}")


def find(query: str, minor: int = 39) -> Ask:
    """Search for candidates."""
    return plain("GET", f"{CANDIDATES}?{query}", minor)


TREE = [provider(), provider(CHILD, "child", HOST), offers(VCPU=4), offers(CHILD, VCPU=16)]
SHARED = [
    provider(),
    provider(SHARER, "sharer"),
    offers(VCPU=4),
    offers(SHARER, DISK_GB=8),
    tagged("traits", ["MISC_SHARES_VIA_AGGREGATE"], SHARER),
    tagged("aggregates", AGGREGATES[:1]),
    tagged("aggregates", AGGREGATES[:1], SHARER),
]

SHARER_FIRST = [SHARED[1], SHARED[0], *SHARED[2:]]

OTHER_TREE = [
    provider(),
    offers(VCPU=4),
    tagged("traits", ["HW_CPU_X86_AVX2"]),
    provider(CHILD, "other"),
]
IN_OTHER_TREE = f"resources=VCPU:1&required_A=HW_CPU_X86_AVX2&in_tree_A={CHILD}&same_subtree=_A"

EXAMPLES: dict[str, list[Ask]] = {
    "UUID spellings": [provider(), part("GET", "", HOST.upper())],
    "Unknown names in queries": [
        find("resources=VCPU:1&resources1=CUSTOM_NOSUCH:1"),
    ],
    "Browsers at the root": [with_header(plain("GET", "/"), "Accept", "text/html,*/*;q=0.8")],
    "Empty provider names": [provider(), part("PUT", "", body={"name": ""})],
    "Duplicate keys": [
        provider(),
        part("PUT", "", body=Pairs([("name", "a"), ("name", "b")])),
    ],
    "NUL characters": [provider(name="a\0b")],
    "Media type spellings": [
        with_header(provider(), "Content-Type", "APPLICATION/JSON"),
    ],
    "Microversion spellings": [
        with_header(plain("GET", "/resource_providers"), VERSION, "placement 1.1_0"),
    ],
    "Semicolons in queries": [plain("GET", "/resource_providers?name=a;uuid=b")],
    "Non-ASCII addresses": [
        plain("GET", "/resource_classes/%C3%89", template="/resource_classes/{class}")
    ],
    "Empty Accept lists": [with_header(plain("GET", "/resource_providers"), "Accept", ",")],
    "Values beyond JSON": [
        provider(),
        part(
            "POST",
            "/inventories",
            body={
                "resource_class": "VCPU",
                "total": 1,
                "allocation_ratio": Raw(b"1e999"),
            },
        ),
    ],
    "Vary on every response": [plain("GET", "/nothing")],
    "HEAD requests": [plain("HEAD", "/resource_providers")],
    "Order of sets": [plain("GET", "/traits")],
    "Order of consumer types": [
        provider(),
        offers(VCPU=4),
        claim(consumer_type="MIGRATION"),
        claim(consumer=CONSUMERS[1]),
        plain("GET", "/usages?project_id=project"),
    ],
    "Order of classes in use": [
        *(
            plain("PUT", f"/resource_classes/{name}", template="/resource_classes/{class}")
            for name in ("CUSTOM_A", "CUSTOM_B")
        ),
        provider(),
        offers(CUSTOM_A=4, CUSTOM_B=4),
        claim(allocations={HOST: {"resources": {"CUSTOM_A": 1, "CUSTOM_B": 1}}}),
        offers(VCPU=4),
    ],
    "Missing inventories": [
        provider(),
        provider(CHILD, "child"),
        offers(VCPU=4),
        claim(
            allocations={
                HOST: {"resources": {"VCPU": 1}},
                CHILD: {"resources": {"DISK_GB": 1}},
            }
        ),
    ],
    "Errors in long bodies": [provider(**{"x" * 10_000: 1})],
    "Whole numbers written as fractions": [
        provider(),
        offers(VCPU=4),
        claim(consumer_generation=4.0),
    ],
    "Order of provider summaries": [
        *SHARER_FIRST,
        find("resources_A=VCPU:1&resources=DISK_GB:1"),
    ],
    "Internal server errors": [find("resources=VCPU:99999999999999999999")],
    "SQL in error messages": [
        provider(),
        offers(VCPU=4),
        part("POST", "/inventories", body={"resource_class": "VCPU", "total": 1}),
    ],
    "Trailing newlines": [
        plain("PUT", "/traits/CUSTOM_T%0A", template="/traits/{trait}"),
        find("resources2%0A=VCPU:1"),
    ],
    "Consumer types starting with `all`": [
        plain("GET", "/usages?project_id=project&consumer_type=allx")
    ],
    "Trait prefixes as patterns": [plain("GET", "/traits?name=startswith:hw_")],
    "Underscores in amounts": [find("resources=VCPU:1_0")],
    LEFT_BEHIND: [claim()],
    "Oversized candidates": [*TREE, find("resources=VCPU:1&resources3=VCPU:1")],
    "Lost candidates of sharing providers": [
        *SHARED,
        provider(CHILD, "other"),
        tagged("aggregates", AGGREGATES[:1], CHILD),
        tagged("traits", ["HW_CPU_X86_AVX2"]),
        find("resources=DISK_GB:1&required_A=HW_CPU_X86_AVX2&same_subtree=_A"),
    ],
    "Surplus provider summaries": [*TREE, find("resources=VCPU:1&limit=1", minor=28)],
    "Trees of groups without resources": [*OTHER_TREE, find(IN_OTHER_TREE)],
    "Groups that only exclude": [
        provider(),
        offers(VCPU=4),
        find("resources1=VCPU:1&required_A=!HW_CPU_X86_AVX2&same_subtree=1,_A&group_policy=none"),
    ],
}


def reshaper(*more: tuple[str, Any]) -> Ask:
    """Return a reshape of a provider that does not exist, with additional members."""
    one = {"resource_provider_generation": 0, "inventories": {}}
    members = [("inventories", {CHILD: one}), *more]
    return plain("POST", "/reshaper", 37, Pairs(members))


def in_form(name: str, form: str) -> list[Ask]:
    """Return an example whose last request accepts another format."""
    *before, last = EXAMPLES[name]
    return [*before, with_header(last, "Accept", form)]


VARIANTS: list[tuple[str, list[Ask]]] = [
    ("HEAD requests", [with_header(plain("HEAD", "/"), "Accept", "text/plain")]),
    ("HEAD requests", [plain("HEAD", "/resource_providers/unknown")]),
    (
        "Microversion spellings",
        [with_header(plain("HEAD", "/resource_providers"), VERSION, "placement +1.5")],
    ),
    (
        "Microversion spellings",
        [with_header(plain("GET", "/resource_providers"), VERSION, "placement 1")],
    ),
    # Both refuse this, but the original with a different code.
    ("Duplicate keys", [reshaper(("allocations", {}), ("allocations", {}))]),
    ("NUL characters", [reshaper(("allocations", {"a\0b": {}}))]),
    ("Missing inventories", in_form("Missing inventories", "text/html")),
    ("Missing inventories", in_form("Missing inventories", "text/plain")),
    ("Errors in long bodies", in_form("Errors in long bodies", "text/html")),
    (
        "Errors in long bodies",
        [provider(**{"x" * 10_000: Raw(b"'")})],
    ),
    ("Trees of groups without resources", [*OTHER_TREE, find(f"{IN_OTHER_TREE}&limit=1")]),
    ("Oversized candidates", [*TREE, find("resources=VCPU:1&resources3=VCPU:1&limit=9")]),
    (
        "Oversized candidates",
        [
            *TREE,
            with_header(find("resources=VCPU:1&resources3=VCPU:1"), VERSION, "placement latest"),
        ],
    ),
]
"""Other requests with a deliberate difference that its predicate must recognize, too."""
