"""Steps of plays with agents, as Hypothesis draws them: requests to every route of the fleet.

A body lacks what only the answers show, such as generations and UUIDs; the play fills them in.
"""

from random import Random
from typing import Any
from uuid import uuid4

import hypothesis.strategies as st

CLASSES = ["CUSTOM_HUGEPAGES_2MB", "CUSTOM_HUGEPAGES_1GB", "VCPU", "CUSTOM_C"]
NAMES = ["numa0", "numa1", "x"]
OFFERING = ("ready", "degraded")
MAX_INT = 2**31 - 1

AMOUNTS = st.sampled_from([0, 1, 7, 50, 100, 1_000, MAX_INT]) | st.integers(-1, MAX_INT + 1)
TIMES = [
    *("2026-01-01T00:00:00Z", "2026-01-01T00:00:00", "0001-01-01T00:00:00Z"),
    *("9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+12:00", "9999-12-31T23:59:59Z"),
]
SIZES = st.fixed_dictionaries(
    {"eligible": AMOUNTS},
    optional={"volatile": st.booleans(), "max_unit": AMOUNTS, "step_size": AMOUNTS},
)
PART = st.fixed_dictionaries(
    {
        "name": st.sampled_from(NAMES),
        "parent": st.sampled_from([None, None, None, "", *NAMES]),
        "classes": st.dictionaries(st.sampled_from(CLASSES), SIZES, max_size=3),
    }
)
PARTS = st.lists(PART, max_size=3, unique_by=lambda part: str(part["name"]))
FAILURE = st.fixed_dictionaries(
    {
        "code": st.sampled_from(["hugepages_short", ""]),
        "message": st.text(max_size=20),
        "attempts": AMOUNTS,
        "since": st.sampled_from(TIMES),
    },
    optional={"next_retry_in": st.floats(allow_nan=False) | st.integers(-1, 100)},
)
BOOTS = st.sampled_from(["", "", "", "", "boot-1", "boot-2", "boot-3"])
"""Empty: the boot that the server knows."""

ODD = st.none() | st.none() | st.none() | st.randoms(use_true_random=False)
"""With a source of chance something in the body is made odd."""

Drawn = dict[str, Any]

KINDS: dict[str, st.SearchStrategy[Drawn]] = {
    "PUT /v1/agents/{id}": st.fixed_dictionaries(
        {},
        optional={
            "group": st.sampled_from(["a", "b"]),
            "labels": st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
            "policy": st.sampled_from([None, "in_service", "no_provision"]),
            "root": st.none() | st.none() | st.just("given"),
        },
    ),
    "PUT /v1/agents/{id}/root": st.just({"root": "given"}),
    "POST /v1/agents/{id}/enroll": st.just({"group": "a"}),
    "POST /v1/agents/{id}/register": st.fixed_dictionaries(
        {"boot_id": st.sampled_from(["", "", "boot-1", "boot-2", "boot-3"]), "parts": PARTS},
        optional={"labels": st.just({"a": "b"}), "root": st.none() | st.just("given")},
    ),
    "PUT /v1/agents/{id}/report": st.fixed_dictionaries(
        {
            "boot_id": BOOTS,
            "report_generation": st.sampled_from([1, 1, 1, 1, 0, -1, 5]),
            "desired_generation_seen": st.sampled_from([0, 1, 2, 2**53]),
            "phase": st.sampled_from(["done", "done", "preparing"]),
            "actual": st.lists(AMOUNTS, min_size=1, max_size=6),
        },
        optional={
            "consumers": st.sampled_from([None, [], ["claimed"], [str(uuid4())]]),
            "failure": st.none() | FAILURE,
        },
    ),
    "POST /v1/agents/{id}/alive": st.fixed_dictionaries(
        {"boot_id": BOOTS, "report_generation": st.sampled_from([0, 0, 0, 1, -1])}
    ),
    "GET /v1/agents/{id}/starts/{consumer}": st.fixed_dictionaries(
        {"boot_id": BOOTS}, optional={"wait": st.just("0.001")}
    ),
    "POST /v1/agents/{id}/desired": st.fixed_dictionaries(
        {"resource_class": st.sampled_from(CLASSES)},
        optional={"amount": AMOUNTS, "percent": st.floats(0, 101), "provider": st.just("numa0")},
    ),
    **{
        f"POST /v1/agents/{{id}}/{word}": st.fixed_dictionaries(
            {}, optional={"reason": st.text(max_size=5), "until": st.sampled_from(TIMES)}
        )
        for word in ("drain", "resume")
    },
    "POST /v1/agents/{id}/expunge": st.just({}),
    "POST /v1/agents/{id}/decommission": st.fixed_dictionaries({"force": st.booleans()}),
    "GET /v1/agents/{id}": st.just({}),
    "GET /v1/agents": st.fixed_dictionaries(
        {"limit": st.just("5")},
        optional={
            "label": st.sampled_from(["a", "a=b", "$", "$.a", "=", '"']),
            "offered": st.sampled_from(["true", "false"]),
            "readiness": st.sampled_from(OFFERING),
        },
    ),
    "PUT /v1/groups/{name+}": st.fixed_dictionaries(
        {
            "desired": st.dictionaries(
                st.sampled_from(CLASSES),
                st.fixed_dictionaries({"amount": AMOUNTS})
                | st.fixed_dictionaries({"percent": st.floats(0, 100)}),
                max_size=2,
            )
        }
    ),
    "GET /v1/groups": st.just({}),
    "GET /v1/groups/{name+}": st.just({}),
    "DELETE /v1/groups/{name+}": st.just({}),
    "POST /v1/groups/{name+}:confirm": st.just({}),
    "POST /v1/groups/{name+}:wait": st.fixed_dictionaries({"seconds": st.floats(-1, 1e9)}),
    # Clients of the Placement API, which know nothing of agents.
    "claim": st.fixed_dictionaries({"amount": st.sampled_from([1, 7, 50])}),
    "release": st.just({}),
    "total": st.fixed_dictionaries({"total": st.sampled_from([1, 20, 100])}),
    "delete": st.just({}),
}
OFTEN = ("PUT /v1/agents/{id}/report", "POST /v1/agents/{id}/register", "claim")

STEPS = st.one_of(
    *(
        st.tuples(st.just(kind), st.integers(0, 1), drawn, ODD)
        for kind, drawn in KINDS.items()
        for _ in range(3 if kind in OFTEN else 1)
    )
)
Step = tuple[str, int, Drawn, Random | None]

WORDS = "POST /v1/agents/{id}"
PREPARED: list[Step] = [
    ("PUT /v1/agents/{id}", 0, {"group": "a"}, None),
    (
        f"{WORDS}/register",
        0,
        {
            "boot_id": "boot-1",
            "parts": [
                {"name": "numa0", "parent": None, "classes": {CLASSES[0]: {"eligible": 1_000}}}
            ],
        },
        None,
    ),
    (f"{WORDS}/desired", 0, {"resource_class": CLASSES[0], "amount": 100}, None),
    (
        "PUT /v1/agents/{id}/report",
        0,
        {
            "boot_id": "",
            "report_generation": 1,
            "desired_generation_seen": 1,
            "phase": "done",
            "actual": [100],
        },
        None,
    ),
]
"""A machine that offers 100 pages."""
