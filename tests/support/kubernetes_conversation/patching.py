"""Steps: patches of all kinds, and server-side apply."""

from tests.support.kubernetes_client import least_status
from tests.support.kubernetes_conversation.steps import (
    HOSTS,
    JSON,
    STRATEGIC,
    Ask,
    Of,
    Step,
    apply,
    create,
    get,
    host,
    json_patch,
    merge,
)

PATCHED = f"{HOSTS}/patched"
PAUSED = "baremetalhost.metal3.io/paused"
KEY = f"/metadata/annotations/{PAUSED.replace('/', '~1')}"
ADD = [{"op": "add", "path": "/spec/description", "value": "x"}]

PATCHES: tuple[Step, ...] = (
    create("patched", host("patched", annotations={PAUSED: "moorage"})),
    Ask(
        "merge",
        "PATCH",
        PATCHED,
        {"spec": {"image": {"url": "u"}}},
        "application/merge-patch+json",
        fields=True,
    ),
    merge("merge nothing", PATCHED, {}),
    merge("merge the same", PATCHED, {"spec": {"image": {"url": "u"}}}),
    merge(
        "merge null",
        PATCHED,
        {"spec": {"image": None}, "metadata": {"annotations": {PAUSED: None}}},
    ),
    merge("merge null that is not there", PATCHED, {"spec": {"image": None}}),
    merge(
        "merge an old version",
        PATCHED,
        {
            "metadata": {"resourceVersion": Of("patched", "metadata.resourceVersion")},
            "spec": {"online": False},
        },
    ),
    merge(
        "merge no version",
        PATCHED,
        {"metadata": {"resourceVersion": None}, "spec": {"online": False}},
    ),
    merge(
        "merge the newest version",
        PATCHED,
        {
            "metadata": {"resourceVersion": Of("merge null", "metadata.resourceVersion")},
            "spec": {"online": False},
        },
    ),
    merge("merge a name", PATCHED, {"metadata": {"name": "another"}}),
    merge("merge a UID", PATCHED, {"metadata": {"uid": "another"}}),
    merge("merge a namespace", PATCHED, {"metadata": {"namespace": "default"}}),
    merge(
        "merge system fields",
        PATCHED,
        {
            "metadata": {
                "generation": 9,
                "creationTimestamp": None,
                "deletionTimestamp": "2020-01-01T00:00:00Z",
            }
        },
    ),
    merge("merge an unknown field", PATCHED, {"spec": {"one": 1}}),
    merge("merge strictly", PATCHED, {"spec": {"one": 1}}, fieldValidation="Strict"),
    merge("merge what is wrong", PATCHED, {"spec": {"online": "yes"}}),
    merge("merge a status", PATCHED, {"status": {"poweredOn": "no"}}),
    merge("merge a list", PATCHED, [1]),
    merge("merge into nothing", f"{HOSTS}/nothing", {}),
    merge("merge a collection", HOSTS, {}),
    merge("merge by force", PATCHED, {}, force="true"),
    merge("merge for show", PATCHED, {"spec": {"online": True}}, dryRun="All"),
    merge("merge another version of the API", PATCHED, {"apiVersion": "v1"}),
    merge("merge another kind", PATCHED, {"kind": "Another"}),
    get("after the merges", PATCHED),
    Ask("JSON patch", "PATCH", PATCHED, ADD, "application/json-patch+json", fields=True),
    json_patch(
        "JSON patch with a test",
        PATCHED,
        [
            {"op": "test", "path": "/spec/description", "value": "x"},
            {"op": "remove", "path": "/spec/description"},
        ],
    ),
    json_patch(
        "JSON patch with a failed test", PATCHED, [{"op": "test", "path": KEY, "value": "x"}, *ADD]
    ),
    json_patch("JSON patch of nothing", PATCHED, [{"op": "remove", "path": "/spec/nothing"}]),
    json_patch(
        "JSON patch below nothing",
        PATCHED,
        [{"op": "add", "path": "/spec/image/url", "value": "u"}],
    ),
    json_patch(
        "JSON patch with a null test", PATCHED, [{"op": "test", "path": KEY, "value": None}, *ADD]
    ),
    json_patch("JSON patch of another kind", PATCHED, [{"op": "grow", "path": "/spec/online"}]),
    json_patch("JSON patch that is none", PATCHED, {"op": "add"}),
    json_patch(
        "JSON patch of an unknown field", PATCHED, [{"op": "add", "path": "/spec/one", "value": 1}]
    ),
    json_patch(
        "JSON patch, replace nothing",
        PATCHED,
        [{"op": "replace", "path": "/spec/hardwareProfile", "value": "x"}],
    ),
    json_patch(
        "JSON patch, copy and move",
        PATCHED,
        [
            {"op": "copy", "from": "/spec/description", "path": "/spec/hardwareProfile"},
            {"op": "move", "from": "/spec/description", "path": "/spec/architecture"},
        ],
    ),
    json_patch("JSON patch to be empty", PATCHED, []),
    Ask("strategic patch", "PATCH", PATCHED, {}, STRATEGIC),
    Ask("a patch of no kind", "PATCH", PATCHED, {}, JSON),
)

APPLIED_ONE = f"{HOSTS}/applied"
ANNOTATED = host("applied", annotations={"a": "1", "b": "1"}, labels={"x": "1"})

APPLIES: tuple[Step, ...] = (
    apply("apply a new one", APPLIED_ONE, ANNOTATED),
    apply("apply the same", APPLIED_ONE, ANNOTATED),
    apply("apply the same as another", APPLIED_ONE, host("applied", annotations={"a": "1"}), "two"),
    apply("apply a conflict", APPLIED_ONE, host("applied", annotations={"a": "2"}), "two"),
    apply(
        "apply two conflicts",
        APPLIED_ONE,
        host("applied", annotations={"a": "2", "b": "2"}),
        "three",
    ),
    apply(
        "apply by force", APPLIED_ONE, host("applied", annotations={"a": "2"}), "two", force="true"
    ),
    apply("apply less", APPLIED_ONE, host("applied", annotations={"b": "1"})),
    apply("apply no annotation", APPLIED_ONE, host("applied")),
    Ask(
        "update an applied one",
        "PATCH",
        APPLIED_ONE,
        {"spec": {"description": "x", "image": {"url": "u"}}},
        "application/merge-patch+json",
        {"fieldManager": "user"},
        fields=True,
    ),
    apply(
        "apply against an update",
        APPLIED_ONE,
        host("applied", spec={"online": True, "description": "y"}),
    ),
    apply(
        "apply against updates",
        APPLIED_ONE,
        host("applied", spec={"online": True, "description": "y", "image": {"url": "v"}}),
    ),
    apply(
        "apply what an update has",
        APPLIED_ONE,
        host("applied", spec={"online": True, "description": "x"}),
    ),
    apply("apply it no longer", APPLIED_ONE, host("applied", spec={"online": True})),
    apply(
        "apply for show",
        APPLIED_ONE,
        host("applied", spec={"online": True, "architecture": "x"}),
        dryRun="All",
    ),
    apply("apply without a manager", APPLIED_ONE, host("applied"), ""),
    apply("apply an unknown field", APPLIED_ONE, host("applied", spec={"online": True, "one": 1})),
    apply(
        "apply a wrong value", APPLIED_ONE, host("applied", spec={"online": True, "bootMode": "x"})
    ),
    apply("apply an old version", APPLIED_ONE, host("applied", resourceVersion="1")),
    apply("apply a finalizer", APPLIED_ONE, host("applied", finalizers=["a.b/c"])),
    apply(
        "apply another finalizer",
        APPLIED_ONE,
        host("applied", finalizers=["a.b/d"], spec={}),
        "two",
    ),
    apply("apply no finalizer", APPLIED_ONE, host("applied")),
    apply(
        "apply an owner as a whole",
        APPLIED_ONE,
        host("applied", spec={"online": True, "consumerRef": {"name": "c"}}),
    ),
    apply(
        "apply a status",
        f"{APPLIED_ONE}/status",
        {
            **host("applied", spec={"online": False}),
            "status": least_status(
                conditions=[
                    {
                        "type": "Ready",
                        "status": "True",
                        "reason": "R",
                        "message": "",
                        "lastTransitionTime": "2026-01-01T00:00:00Z",
                    }
                ]
            ),
        },
        "operator",
    ),
    Ask(
        "update a status",
        "PATCH",
        f"{APPLIED_ONE}/status",
        {"status": {"poweredOn": True}},
        "application/merge-patch+json",
        {"fieldManager": "operator"},
        fields=True,
    ),
    apply(
        "apply a status that is not there",
        f"{HOSTS}/nothing/status",
        {**host("nothing"), "status": least_status()},
        "operator",
    ),
    apply("apply another name", APPLIED_ONE, host("another")),
    Ask("after the applies", "GET", APPLIED_ONE, fields=True),
)
