"""Steps: hosts are created, read, replaced and deleted."""

from typing import Any

from tests.support.kubernetes_client import least_status
from tests.support.kubernetes_conversation.steps import (
    ALL_HOSTS,
    HOSTS,
    SPACE,
    TABLE,
    Ask,
    Of,
    Step,
    create,
    delete,
    get,
    host,
    merge,
    put,
)

FINALIZER = "baremetalhost.metal3.io"
ONE = f"{HOSTS}/one"
NOTE: dict[str, Any] = {"metadata": {"annotations": {"note": "1"}}}
RAID = {"softwareRAIDVolumes": [{"level": "1"}]}
WRONG: dict[str, Any] = {
    "online": "yes",
    "automatedCleaningMode": "never",
    "bootMACAddress": "one",
    "image": {"format": "raw"},
    "raid": {"hardwareRAIDVolumes": [{"level": "7", "sizeGibibytes": -1}]},
}

CREATED: tuple[Step, ...] = (
    create("namespace", {"metadata": {"name": SPACE}}, "/api/v1/namespaces"),
    create("namespace again", {"metadata": {"name": SPACE}}, "/api/v1/namespaces"),
    get("no host yet", HOSTS),
    Ask("one", "POST", HOSTS, host("one", annotations={"mine": "1"}), fields=True),
    create("one again", host("one")),
    create("no name", host("")),
    create("a bad name", host("A_b")),
    create("a generated name", host("", generateName="gen-"), dryRun="All"),
    create("in no namespace", host("a"), HOSTS.replace(SPACE, "nowhere")),
    create("in another namespace", host("a", namespace="default")),
    create("in all namespaces", host("a"), ALL_HOSTS),
    create("another kind", {**host("a"), "kind": "Another"}),
    create("another version", {**host("a"), "apiVersion": "v1"}),
    create("no kind", {"apiVersion": "metal3.io/v1alpha1", "metadata": {"name": "a"}}),
    create("no API version", {"kind": "BareMetalHost", "metadata": {"name": "a"}}),
    create("with a version", host("a", resourceVersion="1")),
    create("with a status", {**host("stated"), "status": least_status()}),
    create("with a wrong status", {**host("wrong"), "status": {"poweredOn": 1}}, dryRun="All"),
    create(
        "with a UID",
        host("own", uid="mine", generation=7, creationTimestamp="2020-01-01T00:00:00Z"),
    ),
    create(
        "an unknown field",
        host("unknown", spec={"online": True, "one": 1, "image": {"url": "u", "two": 2}}),
    ),
    create("strictly", host("a", spec={"online": True, "one": 1}), fieldValidation="Strict"),
    create(
        "strictly, two",
        host(
            "a",
            spec={
                "online": True,
                "one": 1,
                "bmc": {"x": 1, "address": "a", "credentialsName": "b"},
            },
        ),
        fieldValidation="Strict",
    ),
    create(
        "without a look", host("ignored", spec={"online": True, "one": 1}), fieldValidation="Ignore"
    ),
    create("nothing required", host("a", spec={})),
    create("no specification", {key: one for key, one in host("bare").items() if key != "spec"}),
    create("wrong values", host("a", spec=WRONG)),
    create("nulls", host("a", spec={"online": None, "image": None})),
    create(
        "a null with a default",
        host("a", spec={"online": True, "automatedCleaningMode": None}),
        dryRun="All",
    ),
    create("a default in a list", host("a", spec={"online": True, "raid": RAID}), dryRun="All"),
    create(
        "too short a list",
        host(
            "a",
            spec={
                "online": True,
                "raid": {"softwareRAIDVolumes": [{"level": "1", "physicalDisks": [{}]}]},
            },
        ),
    ),
    create(
        "too long a list",
        host("a", spec={"online": True, "raid": {"softwareRAIDVolumes": [{"level": "1"}] * 3}}),
    ),
    create(
        "a list that is null",
        host("a", spec={"online": True, "raid": {"softwareRAIDVolumes": None}}),
        dryRun="All",
    ),
    create("a dry run", host("dry"), dryRun="All"),
    create("a wrong dry run", host("dry"), dryRun="Some"),
    create("a finalizer", host("held", finalizers=[FINALIZER])),
    create("labels", host("two", labels={"rack": "2"})),
)

READ: tuple[Step, ...] = (
    get("read", ONE),
    get("read what is not there", f"{HOSTS}/nothing"),
    get("read no status", f"{ONE}/status"),
    get("read a dry run", f"{HOSTS}/dry"),
    get("a page", HOSTS, limit="2"),
    get("the next page", HOSTS, limit="2", **{"continue": Of("a page", "metadata.continue")}),
    get(
        "a page and a version",
        HOSTS,
        resourceVersion="1",
        **{"continue": Of("a page", "metadata.continue")},
    ),
    get("a wrong page", HOSTS, limit="2", **{"continue": "x"}),
    get("labels of a list", HOSTS, labelSelector="rack=2"),
    get("labels and a page", HOSTS, labelSelector="!rack", limit="1"),
    get("a name", HOSTS, fieldSelector="metadata.name=two"),
    get("a namespace", ALL_HOSTS, fieldSelector=f"metadata.namespace={SPACE},metadata.name=two"),
    get("an unknown field of a list", HOSTS, fieldSelector="spec.online=true"),
    get("any version", HOSTS, resourceVersion="0", labelSelector="rack=2"),
    get("a version that is not there yet", HOSTS, resourceVersion="99999999999"),
    get("no number as a version", HOSTS, resourceVersion="abc"),
    get("no number as a limit", HOSTS, limit="abc"),
    get(
        "an exact version",
        HOSTS,
        resourceVersion=Of("one", "metadata.resourceVersion"),
        resourceVersionMatch="Exact",
    ),
    get("a match without a version", HOSTS, resourceVersionMatch="Exact"),
    get("initial events of a list", HOSTS, sendInitialEvents="true"),
    Ask("a table", "GET", ONE, accept=TABLE),
    Ask("a table of a list", "GET", HOSTS, accept=TABLE, query={"labelSelector": "rack=2"}),
    Ask("a table of a refusal", "GET", f"{HOSTS}/nothing", accept=TABLE),
)

REPLACED: tuple[Step, ...] = (
    put("without a version", ONE, host("one")),
    Ask("replaced", "PUT", ONE, Of("one", "", {"spec": {"description": "x"}}), fields=True),
    put("an old version", ONE, Of("one", "", {"spec": {"description": "y"}})),
    put("nothing changed", ONE, Of("replaced")),
    put(
        "a status that is not stored", ONE, Of("replaced", "", {"status": {"poweredOn": 1}, **NOTE})
    ),
    put("another UID", ONE, Of("read", "", {"metadata": {"uid": "another"}})),
    put("another name", ONE, Of("read", "", {"metadata": {"name": "two"}})),
    put("without a name", ONE, Of("read", "", {"metadata": {"name": None}})),
    put("what is not there", f"{HOSTS}/nothing", host("nothing", resourceVersion="1")),
    put("into another namespace", ONE, Of("read", "", {"metadata": {"namespace": "default"}})),
    get("before the next", ONE),
    put("wrong and old", ONE, Of("one", "", {"spec": {"online": 1}})),
    put("wrong", ONE, Of("before the next", "", {"spec": {"online": 1}})),
    put(
        "replaced for show",
        ONE,
        Of("before the next", "", {"spec": {"online": False}}),
        dryRun="All",
    ),
    put(
        "strictly replaced",
        ONE,
        Of("before the next", "", {"spec": {"x": 1}}),
        fieldValidation="Strict",
    ),
    put(
        "a manager is named",
        ONE,
        Of("before the next", "", {"spec": {"description": None}}),
        fieldManager="named",
    ),
    put(
        "a wrong status",
        f"{ONE}/status",
        Of("a manager is named", "", {"status": {"poweredOn": "no", "provisioning": {"state": 1}}}),
    ),
    Ask(
        "a status",
        "PUT",
        f"{ONE}/status",
        Of("a manager is named", "", {"status": least_status(), "spec": {"online": False}, **NOTE}),
        fields=True,
    ),
    put("an old status", f"{ONE}/status", Of("a manager is named", "", {"status": least_status()})),
    put(
        "a status in another state",
        f"{ONE}/status",
        Of(
            "a status",
            "",
            {"status": {"operationalStatus": "odd", "errorType": "odd", "lastUpdated": "now"}},
        ),
    ),
    put("no status", f"{ONE}/status", Of("a status", "", {"status": None})),
    merge("a part of a status", f"{ONE}/status", {"status": {"poweredOn": True}}),
    merge(
        "all of a status",
        f"{ONE}/status",
        {"status": least_status(), "metadata": {"labels": {"x": "1"}}},
    ),
    merge("a condition", f"{ONE}/status", {"status": {"conditions": [{"type": "Ready"}]}}),
    put(
        "the host keeps its status",
        ONE,
        Of("all of a status", "", {"status": None, "spec": {"description": "z"}}),
    ),
)

DELETED: tuple[Step, ...] = (
    delete("what is gone", f"{HOSTS}/nothing"),
    delete("a wrong UID", f"{HOSTS}/two", {"preconditions": {"uid": "another"}}),
    delete("a wrong version", f"{HOSTS}/two", {"preconditions": {"resourceVersion": "1"}}),
    delete("for show", f"{HOSTS}/two", dryRun="All"),
    delete("two", f"{HOSTS}/two", {"preconditions": {"uid": Of("labels", "metadata.uid")}}),
    get("two is gone", f"{HOSTS}/two"),
    delete("for show, held", f"{HOSTS}/held", dryRun="All"),
    delete("held", f"{HOSTS}/held"),
    delete("held again", f"{HOSTS}/held"),
    get("held is there", f"{HOSTS}/held"),
    merge("a new finalizer", f"{HOSTS}/held", {"metadata": {"finalizers": [FINALIZER, "a.b/c"]}}),
    merge("still changed", f"{HOSTS}/held", {"spec": {"description": "going"}}),
    merge("let go for show", f"{HOSTS}/held", {"metadata": {"finalizers": None}}, dryRun="All"),
    merge("let go", f"{HOSTS}/held", {"metadata": {"finalizers": None}}),
    get("held is gone", f"{HOSTS}/held"),
    delete("some", HOSTS, labelSelector="none=1"),
    delete("the collection", HOSTS),
    get("none is left", HOSTS),
)
