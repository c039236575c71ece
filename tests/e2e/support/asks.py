"""Valid requests to every route that takes texts, for `texts.py` to put other texts into them."""

from tests.e2e.support.texts import AGGREGATE, CONSUMER, FRESH, GENERATION, LEASE, PROVIDER, Ask

_ONE = "/resource_providers/{}"
_MADE = {"allocations": {PROVIDER: {"resources": {"VCPU": 1}}}, "project_id": "p", "user_id": "u"}
_HELD = {**_MADE, "consumer_generation": None, "consumer_type": "INSTANCE"}
_OFFERED = {
    "VCPU": {"total": 1_000_000, "reserved": 0, "allocation_ratio": 1.0},
    "CUSTOM_A": {"total": 5},
}
_GROUPS = [
    {
        "suffix": "",
        "resources": {"VCPU": 1},
        "required": ["CUSTOM_T"],
        "forbidden": ["CUSTOM_U"],
        "member_of": [AGGREGATE],
        "in_tree": PROVIDER,
    }
]
_QUESTION = {"groups": _GROUPS, "group_policy": "none", "root_required": ["CUSTOM_T"]}
_LEASE = "/v1/leases/{}"

MAKING = (
    Ask("PUT", "/resource_classes/{}", ("CUSTOM_A",)),
    Ask("PUT", "/traits/{}", ("CUSTOM_T",)),
    Ask("PUT", "/traits/{}", ("CUSTOM_U",)),
    Ask(
        "PUT",
        f"{_ONE}/inventories",
        (PROVIDER,),
        body={"resource_provider_generation": GENERATION, "inventories": _OFFERED},
    ),
    Ask(
        "PUT",
        f"{_ONE}/traits",
        (PROVIDER,),
        body={"resource_provider_generation": GENERATION, "traits": ["CUSTOM_T"]},
    ),
    Ask(
        "PUT",
        f"{_ONE}/aggregates",
        (PROVIDER,),
        body={"resource_provider_generation": GENERATION, "aggregates": [AGGREGATE]},
    ),
    Ask(
        "PUT",
        "/v1/pools/{}",
        ("p",),
        body={
            "limit": 1_000_000,
            "ttl": 60,
            "pacing": {"interval": 0.001, "burst": 1_000},
            "labels": {"of": "texts"},
            "on_retry": "keep",
            "expire": "free",
        },
    ),
    Ask("POST", "/v1/pools/{}:resume", ("p",)),
    Ask(
        "POST",
        "/v1/leases",
        query=(("wait", "0"),),
        body={"needs": [{"pool": "p", "units": 1}], "key": FRESH, "labels": {"a": "b"}, "ttl": 60},
    ),
)
"""What the others need: requested in this order, and again in between."""

ASKS = (
    *MAKING,
    Ask("GET", "/resource_providers", query=(("name", "one"), ("uuid", PROVIDER))),
    Ask(
        "GET",
        "/resource_providers",
        query=(("member_of", AGGREGATE), ("resources", "VCPU:1"), ("required", "CUSTOM_T")),
    ),
    Ask("GET", "/resource_providers", query=(("in_tree", PROVIDER),)),
    Ask("POST", "/resource_providers", body={"name": FRESH, "uuid": FRESH}),
    Ask("POST", "/resource_providers", body={"name": FRESH, "parent_provider_uuid": PROVIDER}),
    Ask("GET", _ONE, (PROVIDER,), headers=True),
    Ask("PUT", _ONE, (PROVIDER,), body={"name": "one"}),
    Ask("DELETE", _ONE, (CONSUMER,), sure=False),
    *[
        Ask("GET", f"{_ONE}/{each}", (PROVIDER,))
        for each in ("inventories", "usages", "allocations", "traits", "aggregates")
    ],
    Ask("GET", f"{_ONE}/inventories/{{}}", (PROVIDER, "CUSTOM_A")),
    Ask(
        "PUT",
        f"{_ONE}/inventories/{{}}",
        (PROVIDER, "CUSTOM_A"),
        body={"resource_provider_generation": GENERATION, "total": 6},
    ),
    Ask(
        "POST",
        f"{_ONE}/inventories",
        (PROVIDER,),
        body={"resource_class": "DISK_GB", "total": 6},
        sure=False,
    ),
    Ask("DELETE", f"{_ONE}/inventories/{{}}", (PROVIDER, "CUSTOM_Z"), sure=False),
    Ask("POST", "/resource_classes", body={"name": "CUSTOM_NEW"}),
    Ask("GET", "/resource_classes/{}", ("CUSTOM_A",)),
    Ask(
        "PUT",
        "/resource_classes/{}",
        ("CUSTOM_NEW",),
        body={"name": "CUSTOM_NEWER"},
        version="placement 1.6",
    ),
    Ask("DELETE", "/resource_classes/{}", ("CUSTOM_NEWER",)),
    Ask("GET", "/traits", query=(("name", "in:CUSTOM_T,CUSTOM_U"), ("associated", "true"))),
    Ask("GET", "/traits", query=(("name", "startswith:CUSTOM_"),)),
    Ask("GET", "/traits/{}", ("CUSTOM_T",)),
    Ask("DELETE", "/traits/{}", ("CUSTOM_Z",), sure=False),
    Ask("PUT", "/allocations/{}", (FRESH,), body=_HELD),
    Ask(
        "PUT",
        "/allocations/{}",
        (FRESH,),
        body={
            **_MADE,
            "allocations": [{"resource_provider": {"uuid": PROVIDER}, "resources": {"VCPU": 1}}],
        },
        version="placement 1.8",
    ),
    Ask("POST", "/allocations", body={FRESH: _HELD}),
    Ask("GET", "/allocations/{}", (CONSUMER,)),
    Ask("DELETE", "/allocations/{}", (CONSUMER,), sure=False),
    Ask(
        "GET",
        "/usages",
        query=(("project_id", "p"), ("user_id", "u"), ("consumer_type", "INSTANCE")),
        headers=True,
    ),
    Ask(
        "POST",
        "/reshaper",
        body={
            "inventories": {
                PROVIDER: {"resource_provider_generation": GENERATION, "inventories": _OFFERED}
            },
            "allocations": {FRESH: _HELD},
        },
    ),
    Ask(
        "GET",
        "/allocation_candidates",
        query=(
            *(("resources", "VCPU:1"), ("required", "CUSTOM_T"), ("member_of", AGGREGATE)),
            *(("resources_A", "VCPU:1"), ("in_tree_A", PROVIDER), ("group_policy", "none")),
            *(("same_subtree", "_A"), ("root_required", "CUSTOM_T"), ("limit", "5")),
        ),
    ),
    # The native API.
    Ask("GET", "/v1/providers", query=(("cursor", PROVIDER), ("limit", "5"))),
    Ask(
        "POST",
        "/v1/providers:bulk",
        body={
            "providers": [
                {
                    "uuid": FRESH,
                    "name": FRESH,
                    "parent": None,
                    "inventories": {"VCPU": {"total": 1}},
                    "traits": ["CUSTOM_T"],
                    "aggregates": [AGGREGATE],
                }
            ],
            "create_vocabulary": True,
        },
    ),
    Ask(
        "POST",
        "/v1/claims",
        body={
            **_QUESTION,
            "project_id": "p",
            "user_id": "u",
            "consumer": FRESH,
            "consumer_type": "INSTANCE",
            "choose": "pack",
        },
    ),
    Ask("POST", "/v1/explain", body=_QUESTION),
    Ask("GET", "/v1/explain", query=(("query", '{"groups":[{"resources":{"VCPU":1}}]}'),)),
    Ask("GET", "/v1/pools", query=(("cursor", "o"), ("limit", "5"))),
    Ask("GET", "/v1/pools/{}", ("p",)),
    Ask("GET", "/v1/pools/{}:report", ("p",)),
    Ask("POST", "/v1/pools/{}:pause", ("q",), sure=False),
    Ask("DELETE", "/v1/pools/{}", ("q",), sure=False),
    Ask(
        "POST",
        "/v1/leases",
        query=(("wait", "0.001"),),
        headers=True,
        body={
            "needs": [{"pool": "p"}],
            "key": FRESH,
            "ttl": 1,
            "hold": 60,
            "priority": 1,
            "patience": 1,
            "force": False,
            "allocations": {
                "consumer": FRESH,
                "allocations": {PROVIDER: {"VCPU": 1}},
                "project_id": "p",
                "user_id": "u",
                "consumer_type": "INSTANCE",
            },
        },
    ),
    Ask(
        "GET",
        "/v1/leases",
        query=(("pool", "p"), ("state", "granted"), ("owner", "admin"), ("limit", "5")),
    ),
    Ask("GET", "/v1/leases", query=(("cursor", "1.x"), ("limit", "5"))),
    Ask("GET", "/v1/leases/verify", query=(("pool", "p"), ("token", "1.1.0"))),
    Ask("GET", _LEASE, (LEASE,), query=(("wait", "0"),)),
    Ask("POST", f"{_LEASE}/renew", (LEASE,), body={"token": None}),
    Ask("PATCH", _LEASE, (LEASE,), body={"hold": 60, "token": None}),
    Ask("POST", f"{_LEASE}/outcome", (LEASE,), body={"result": "ok", "detail": "fine"}),
    Ask("POST", f"{_LEASE}/retry", (LEASE,), body={"key": FRESH}, sure=False),
    Ask("POST", f"{_LEASE}/revoke", (LEASE,), body={"reason": "texts"}, sure=False),
    Ask("DELETE", _LEASE, (LEASE,), query=(("token", "1.1.0"),), sure=False),
    Ask("POST", "/v1/tokens", body={"name": "n", "role": "reader", "project_id": "p"}),
    Ask("GET", "/v1/tokens", query=(("cursor", "1.x"), ("limit", "5"))),
    Ask("DELETE", "/v1/tokens/{}", ("0123456789ab",), sure=False),
    Ask("GET", "/v1/audit", query=(("cursor", "1.x"), ("limit", "5"))),
    Ask("GET", "/v1/watch", query=(("after", "1.0"), ("kinds", "pool,slot"), ("limit", "5"))),
    # The clients of Boskos and of the lease proxy.
    Ask(
        "POST",
        "/acquire",
        query=(
            *(("type", "t1"), ("state", "free"), ("dest", "busy"), ("owner", "me")),
            ("request_id", "r"),
        ),
        door="second",
    ),
    Ask(
        "POST",
        "/acquirebystate",
        query=(("state", "free"), ("dest", "busy"), ("owner", "me"), ("names", "t2-a,t2-b")),
        door="second",
    ),
    Ask(
        "POST",
        "/update",
        query=(("name", "t2-a"), ("owner", "me"), ("state", "busy")),
        body={"a": "b"},
        door="second",
    ),
    Ask(
        "POST",
        "/release",
        query=(("name", "t2-a"), ("owner", "me"), ("dest", "free")),
        door="second",
    ),
    Ask(
        "POST",
        "/reset",
        query=(("type", "t2"), ("state", "busy"), ("expire", "10m"), ("dest", "free")),
        door="second",
    ),
    Ask("GET", "/metric", query=(("type", "t2"),), door="second"),
    Ask("POST", "/lease/acquire", query=(("type", "t3"), ("count", "1")), door="second"),
    Ask(
        "POST",
        "/lease/release",
        query=(("name", "t3-a"),),
        body={"names": ["t3-a", "t3-b"]},
        door="second",
        sure=False,
    ),
)
