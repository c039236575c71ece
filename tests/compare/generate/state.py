"""Requests that read the whole state of a side."""

from tests.compare.generate.requests import Ask, Generations, plain
from tests.e2e.support.fuzzer import CONSUMERS

PROVIDER_PARTS = ("", "/inventories", "/usages", "/allocations", "/traits", "/aggregates")
PROVIDER = "/resource_providers/{provider}"
WIDE = (
    "/resource_providers",
    "/resource_classes",
    "/traits?name=startswith:CUSTOM_",
    "/usages?project_id=project",
    "/usages?project_id=other&consumer_type=all",
    "/usages?project_id=00000000-0000-0000-0000-000000000000",
)


def looks(known: Generations) -> list[Ask]:
    """Return requests that read all objects."""
    asks = [plain("GET", path) for path in WIDE]
    for uuid in known.providers:
        path = f"/resource_providers/{uuid}"
        asks += [plain("GET", path + part, template=PROVIDER + part) for part in PROVIDER_PARTS]
    for uuid in sorted({*known.consumers, *CONSUMERS}):
        asks.append(plain("GET", f"/allocations/{uuid}", template="/allocations/{consumer}"))
    return asks
