"""Requests of imports, which a ledger in use refuses, and of its rows."""

from collections.abc import Callable, Iterator
from typing import Any

ROWS = 1_000


def imports(asked: Callable[..., Any]) -> Iterator[Any]:
    """Return a request to every route of imports; `asked` makes probes."""
    source = {"source": "another ledger"}
    yield asked("begin, invalid", "PUT", "/v1/import", "", source)
    yield asked("import, invalid", "GET", "/v1/import")
    yield asked(f"{ROWS} rows, invalid", "POST", "/v1/import/rows", "", {"consumers": rows(ROWS)})
    yield asked("finish, invalid", "POST", "/v1/import:finish")
    yield asked("abort, invalid", "DELETE", "/v1/import")
    for kind in ("classes", "traits", "providers", "consumers"):
        path = f"/v1/ledger-rows?kind={kind}&limit={ROWS}"
        yield asked(f"rows of {kind}", "GET", "/v1/ledger-rows", path)


def rows(count: int, provider: str = "{:08x}-0000-4000-8000-000000000000") -> list[dict[str, Any]]:
    """Return consumers with an allocation on a provider; braces stand for their number."""
    at = "2026-01-31T12:00:00.000001+00:00"
    return [
        {
            "uuid": f"{n:08x}-0000-4000-a000-000000000000",
            "generation": 1,
            "project": "project",
            "user": "user",
            "type": None,
            "allocations": {provider.format(n): {"VCPU": 2, "MEMORY_MB": 512, "DISK_GB": 3}},
            "created_at": at,
            "updated_at": at,
        }
        for n in range(count)
    ]
