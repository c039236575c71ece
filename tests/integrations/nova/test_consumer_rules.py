"""The rules about consumers: each verdict, by the facts of both sides."""

from typing import Any

import pytest

from moorage.integrations.nova.consumer_rules import Look, judge
from moorage.integrations.nova.facts import Server
from moorage.integrations.nova.findings import Finding, Unclear
from moorage.integrations.nova.ledger_view import Held
from tests.integrations.nova.cases import (
    CEPH,
    CHILD,
    DEAD,
    FLAVOR,
    HOME,
    OTHER,
    WHOLE,
    M,
    U,
    held,
    migration,
    providers,
    server,
)

ON_HOME = {HOME: WHOLE}
ON_BOTH = {HOME: WHOLE, OTHER: WHOLE}
ON_OTHER = {OTHER: WHOLE}
GONE = Look(remembered=True)
OFFLOADED = server(vm_state="shelved_offloaded", host="", node="")
UNKNOWN = Server(U, "UNKNOWN")
DONE = migration("done", "evacuation")

CASES: dict[str, tuple[Held | None, Look, str, list[str]]] = {
    # what the ledger shows, what Nova said, the code, the providers that a heal would release
    "fine": (held(ON_HOME), Look(server()), "", []),
    "fine with a child": (
        held({HOME: WHOLE, CHILD: {"VGPU": 1}}),
        Look(server()),
        "",
        [],
    ),
    "fine with shared storage": (
        held({HOME: {"VCPU": 2, "MEMORY_MB": 1024}, CEPH: {"DISK_GB": 10}}),
        Look(server()),
        "",
        [],
    ),
    "not of a compute node": (held({CEPH: {"DISK_GB": 10}}), GONE, "", []),
    "orphan by its type": (held(ON_HOME, "INSTANCE"), Look(), "orphan", [HOME]),
    "orphan that moved": (held(ON_HOME, "MIGRATION"), Look(), "orphan", [HOME]),
    "orphan by its history": (held(ON_HOME), GONE, "orphan", [HOME]),
    "orphan everywhere": (
        held({DEAD: WHOLE, CEPH: {"DISK_GB": 1}}),
        GONE,
        "orphan",
        [DEAD, CEPH],
    ),
    "no orphan: a cell is away": (held(ON_HOME), Look(unclear="a cell"), "unclear", []),
    "no orphan: its cell is away": (held(ON_HOME), Look(UNKNOWN), "unclear", []),
    "no orphan: only scheduled": (
        held(ON_HOME),
        Look(server(host="", node="", vm_state="building", task_state="scheduling")),
        "",
        [],
    ),
    "foreign by its type": (held(ON_HOME, "RESERVATION"), GONE, "foreign_consumer", []),
    "foreign while a cell is away": (
        held(ON_HOME, "RESERVATION"),
        Look(unclear="a cell"),
        "foreign_consumer",
        [],
    ),
    "foreign without history": (held(ON_HOME), Look(), "foreign_consumer", []),
    "evacuated": (held(ON_BOTH), Look(server(), moves=(DONE,)), "doubled_evacuated", [OTHER]),
    "evacuated, and its host is back": (
        held(ON_BOTH),
        Look(server(), moves=(migration("completed", "evacuation"),)),
        "doubled_evacuated",
        [OTHER],
    ),
    "being evacuated": (
        held(ON_BOTH),
        Look(server(), moves=(migration("accepted", "evacuation"),)),
        "",
        [],
    ),
    "resized, and holds both itself": (
        held(ON_BOTH),
        Look(server(), moves=(migration("confirmed"),)),
        "doubled_resized",
        [OTHER],
    ),
    "doubled, nobody knows why": (held(ON_BOTH), Look(server()), "doubled", []),
    "doubled, and the move failed": (
        held(ON_BOTH),
        Look(server(), moves=(migration("error"),)),
        "doubled",
        [],
    ),
    "a move that is over": (
        held(ON_OTHER, uuid=M),
        Look(server(), migration("confirmed")),
        "doubled_resized",
        [OTHER],
    ),
    "a move that is over, of a deleted server": (
        held(ON_OTHER, uuid=M),
        Look(None, migration("completed", "live-migration")),
        "doubled_resized",
        [OTHER],
    ),
    "a move that is over, of an offloaded server": (
        held(ON_OTHER, uuid=M),
        Look(OFFLOADED, migration("confirmed")),
        "doubled_resized",
        [OTHER],
    ),
    "a move that was reverted, and whose units the server needs": (
        held(ON_HOME, uuid=M),
        Look(server(), migration("reverted")),
        "doubled_resized",
        [],
    ),
    "a move that was cancelled, and whose units the server needs": (
        held(ON_HOME, uuid=M),
        Look(server(), migration("cancelled", "live-migration")),
        "doubled_resized",
        [],
    ),
    "a move that is over, and its server is on a node that is unknown": (
        held(ON_OTHER, uuid=M),
        Look(server(host="new", node="new"), migration("confirmed")),
        "doubled_resized",
        [],
    ),
    "a move that failed, of a deleted server": (
        held(ON_OTHER, uuid=M),
        Look(None, migration("error")),
        "doubled_resized",
        [OTHER],
    ),
    "a move that never ended, of a deleted server": (
        held(ON_OTHER, uuid=M),
        Look(None, migration("confirming")),
        "doubled_resized",
        [OTHER],
    ),
    "a move that does not end, and nothing is done to its server": (
        held(ON_OTHER, uuid=M),
        Look(server(), migration("running", "live-migration")),
        "unclear",
        [],
    ),
    "a move of a server whose cell is away": (
        held(ON_OTHER, uuid=M),
        Look(UNKNOWN, migration("running", "live-migration")),
        "",
        [],
    ),
    "a move that failed": (
        held(ON_OTHER, uuid=M),
        Look(server(), migration("error")),
        "doubled_resized",
        [],
    ),
    "a resize to be confirmed": (
        held(ON_OTHER, uuid=M),
        Look(server(vm_state="resized"), migration("finished")),
        "",
        [],
    ),
    "offloaded": (held(ON_HOME), Look(OFFLOADED), "offloaded", [HOME]),
    "being offloaded": (
        held(ON_HOME),
        Look(server(vm_state="shelved_offloaded", host="", task_state="shelving_offloading")),
        "",
        [],
    ),
    "could not be built": (
        held(ON_HOME),
        Look(server(vm_state="error", host="", node="")),
        "failed_build",
        [HOME],
    ),
    "is tried again": (
        held(ON_HOME),
        Look(server(vm_state="error", host="", node="", task_state="rebuilding")),
        "",
        [],
    ),
    "missing": (None, Look(server()), "missing", []),
    "missing, and elsewhere": (held(ON_OTHER), Look(server()), "missing", []),
    "missing while it is deleted": (None, Look(server(task_state="deleting")), "", []),
    "on a node that is unknown": (
        held(ON_HOME),
        Look(server(host="new", node="new")),
        "unclear",
        [],
    ),
    "wrong shape": (held({HOME: {**WHOLE, "VCPU": 4}}), Look(server()), "wrong_shape", []),
    "another shape while it moves": (
        held({HOME: {**WHOLE, "VCPU": 4}}),
        Look(server(), moves=(migration("finished"),)),
        "",
        [],
    ),
    "a volume as root disk": (
        held({HOME: {"VCPU": 2, "MEMORY_MB": 1024}}),
        Look(server(volume_backed=True)),
        "",
        [],
    ),
    "in the state of an error": (held({HOME: {"VCPU": 9}}), Look(server(vm_state="error")), "", []),
    "soft-deleted": (held(ON_HOME), Look(server(vm_state="soft-delete")), "", []),
    "deleted, and the ledger knows it": (None, Look(), "", []),
}


@pytest.mark.parametrize("name", CASES)
def test_verdicts(name: str) -> None:
    """Each case has this code, and releases just this; what is unclear is no finding."""
    consumer, look, code, released = CASES[name]
    verdict = judge(U, consumer, look, providers(), all_ours=False)
    if code in ("", "unclear"):
        assert isinstance(verdict, Unclear) if code else verdict is None, verdict
        return
    assert isinstance(verdict, Finding)
    assert (verdict.code, [*verdict.release], verdict.delete) == (code, released, ())
    assert verdict.generation == (0 if consumer is None else 3)


def test_archived_servers() -> None:
    """A consumer without a type or history is an orphan only if the operator says so."""
    verdict = judge(U, held(ON_HOME), Look(), providers(), all_ours=True)
    assert isinstance(verdict, Finding) and verdict.code == "orphan"
    foreign = judge(U, held(ON_HOME, "RESERVATION"), Look(), providers(), all_ours=True)
    assert isinstance(foreign, Finding) and foreign.code == "foreign_consumer"


@pytest.mark.parametrize(
    ("specs", "more", "amounts"),
    [
        ({}, {}, {}),
        ({}, {"disk": 8, "ephemeral": 2}, {}),
        ({}, {"swap": 1025, "disk": 8}, {}),
        ({"hw:cpu_policy": "dedicated"}, {}, {"VCPU": 0, "PCPU": 2}),
        ({"resources:VCPU": "1"}, {}, {"VCPU": 1}),
        ({"resources:MEMORY_MB": "0"}, {}, {"MEMORY_MB": 0}),
        ({"resources:CUSTOM_X": "3"}, {}, {"CUSTOM_X": 3}),
        ({"resources1:VGPU": "1", "resources_B:VGPU": "1"}, {}, {"VGPU": 2}),
        ({"hw:emulator_threads_policy": "isolate"}, {}, {"VCPU": 3}),
        ({}, {}, {"NET_BW_EGR_KILOBIT_PER_SEC": 1000}),
    ],
)
def test_shapes(specs: dict[str, str], more: dict[str, Any], amounts: dict[str, int]) -> None:
    """A server that holds what its flavor asks for has the right shape, in all its spellings."""
    flavor = {**FLAVOR, **more, "extra_specs": specs}
    good = {HOME: {**WHOLE, **amounts}}
    assert judge(U, held(good), Look(server(flavor=flavor)), providers(), all_ours=False) is None
    wrong = {HOME: {**WHOLE, **amounts, "MEMORY_MB": 77}}
    verdict = judge(U, held(wrong), Look(server(flavor=flavor)), providers(), all_ours=False)
    assert isinstance(verdict, Finding) and verdict.code == "wrong_shape"
    hidden = {**flavor, "extra_specs": None}
    look = Look(server(flavor=hidden))
    assert judge(U, held(wrong), look, providers(), all_ours=False) is None
