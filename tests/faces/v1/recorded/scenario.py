"""Calls every operation of the native API once, as a story of a small installation."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.e2e.support.server import serve
from tests.faces.v1.native import Native
from tests.faces.v1.recorded.recording import Recorder, steadied

NODE = "6e0f3c52-0000-4000-8000-000000000001"
GPU = "6e0f3c52-0000-4000-8000-0000000000a1"
OLD = "6e0f3c52-0000-4000-8000-0000000000b2"
AGENT = "2d1c9c0e-0000-4000-8000-000000000007"
ROOT = "2d1c9c0e-0000-4000-8000-000000000008"
PART = "d968736b-5f8f-5466-bfd0-b2c7a46b84e8"
BOOT = "2f1c9c0e-5d0b-4d62-a7d9-0c1b6f6f9a11"
INSTANCE = "5d4c1b1e-7f0a-4a63-9f0e-2f7c6b1d8a55"
RESHAPE = "5b0c6f3e-1d2a-4c53-9a77-2f1e0d9c8b7a"
PAST = "2026-01-31T12:00:00Z"

QUESTION = {"groups": [{"resources": {"VCPU": 4, "MEMORY_MB": 8192}}]}
SPLIT = {
    "create": [{"uuid": GPU, "name": "node-1_gpu0", "parent": NODE}],
    "moves": [
        {
            "from": {"provider": NODE, "class": "VGPU"},
            "to": {"provider": GPU, "class": "VGPU"},
            "amount": 8,
        }
    ],
    "traits": {GPU: ["HW_GPU_API_VULKAN"]},
}
BOSKOS = "resources: [{type: azure-project, state: free, names: [eu-3]}]"
PAGES = "CUSTOM_HUGEPAGES_2MB"


def recorded() -> dict[str, Any]:
    """Return an example of every operation, as a real server answers."""
    found: dict[str, Any] = {}
    with TemporaryDirectory(prefix="moorage-examples-") as name:
        for number, tell in enumerate((in_use, imported)):
            database = Path(name) / f"moorage-{number}.sqlite"
            boskos = Path(name) / "boskos.yaml"
            boskos.write_text(BOSKOS)
            words = ["--boskos-listen", "127.0.0.1:0", "--boskos-config", str(boskos)]
            words += ["--backup-directory", name]
            with serve(database, "--no-access-log", *words) as server:
                recorder = Recorder(Native(server.url, database))
                tell(recorder)
                found |= recorder.found
    return steadied(found, name, Path(__file__).read_text())


def in_use(to: Recorder) -> None:
    """Tell the story of an installation."""
    access(to)
    ledger(to)
    reshapes(to)
    pools(to)
    slots(to)
    templates(to)
    leases(to)
    bookings(to)
    fleet(to)
    reporters(to)
    afterwards(to)


def access(to: Recorder) -> None:
    """Make tokens."""
    made = to.call("create_token", body={"name": "ci", "role": "user", "project_id": "shop"})
    to.call("rotate_token", made["id"], body={"grace": 3600.0})
    to.call("list_tokens", limit=2)
    to.call("revoke_token", made["id"])
    to.call("whoami")
    to.call("make_sign_in_link")


def ledger(to: Recorder) -> None:
    """Report providers, and claim from them."""
    machine = {"VCPU": {"total": 32}, "MEMORY_MB": {"total": 131072}, "VGPU": {"total": 8}}
    node = {"uuid": NODE, "name": "node-1", "inventories": machine}
    old = {"uuid": OLD, "name": "node-2", "inventories": {"VCPU": {"total": 16}}}
    to.call("upsert_providers", body={"providers": [node, old], "create_vocabulary": True})
    to.call("list_providers", limit=2)
    to.call("get_provider", NODE)
    claim = {**QUESTION, "project_id": "shop", "user_id": "alice", "choose": "pack"}
    made = to.call("create_claim", body={**claim, "consumer_type": "INSTANCE"})
    to.call("list_consumers", project="shop")
    to.call("get_consumer", made["consumer"])
    to.call("get_capacity", resource_class="VCPU", ends=1)
    to.call("list_usages", by="project")
    to.call("find", text="node-1")
    to.call("explain", body={"groups": [{"resources": {"VCPU": 64}}]})
    to.call("explain_by_query", candidates="resources=VCPU:4&required=HW_CPU_X86_AVX2")
    to.call("drain_provider", OLD, body={"reason": "new disks"})
    to.call("resume_provider", OLD, body={"reason": "it has new disks"})
    to.call("delete_provider", OLD, reason="it was sold")
    to.call("list_ledger_rows", kind="providers", limit=1)


def reshapes(to: Recorder) -> None:
    """Split a provider, and undo that."""
    to.call("plan_reshape", body={"plan": SPLIT})
    to.call("commit_reshape", body={"plan": SPLIT, "id": RESHAPE})
    to.call("get_reshape", RESHAPE)
    to.call("undo_reshape", RESHAPE, body={"dry_run": True})
    to.call("list_reshapes")


def pools(to: Recorder) -> None:
    """Limit how many clusters are installed at once."""
    pool = "install/azure"
    to.call("put_pool", pool, body={"limit": 1, "ttl": 600.0, "hold": 3600.0})
    to.call("get_pool", pool)
    to.call("pause_pool", pool, body={"reason": "the cloud throttles"})
    to.call("resume_pool", pool)
    to.refused("get_pool", "install/azur")


def slots(to: Recorder) -> None:
    """Keep names of things that are handed out."""
    pool = "projects"
    to.call("put_pool", pool, body={"native_slots": True})
    to.call("add_slots", pool, body={"names": ["eu-1", "eu-2"], "labels": {"region": "eu"}})
    to.call("list_slots", pool)
    to.call("label_slot", pool, "eu-1", body={"labels": {"region": "us"}})
    to.call("drain_slot", pool, "eu-2", body={"keep": True, "reason": "disk fails"})
    to.call("resume_slot", pool, "eu-2")
    to.call("remove_slot", pool, "eu-2")
    taken = {"name": "eu-3", "state": "busy", "owner": "job-4711", "updated_at": PAST}
    to.call("import_boskos_resources", "azure-project", body={"resources": [taken]})
    to.call("list_boskos_resources", "azure-project")
    to.call("list_pools")
    to.call("put_pool", "unused", body={"limit": 1})
    wider = {"action": "pool.tune", "target": "unused", "limit": 12}
    shown = to.call("preview_action", body=wider)
    to.call("act", body={**wider, "digest": shown["digest"]})
    to.call("delete_pool", "unused")


def templates(to: Recorder) -> None:
    """Let requests make pools."""
    name = "deploy/*"
    to.call("put_pool_template", name, body={"pool": {"limit": 1}, "idle": 3600.0})
    to.call("get_pool_template", name)
    to.call("list_pool_templates")
    to.call("delete_pool_template", name)


def leases(to: Recorder) -> None:
    """Hold leases, and wait for them."""
    pool = "install/azure"
    needs = [{"pool": pool, "units": 1}]
    wanted = {"needs": needs, "key": "build-4711", "labels": {"job": "4711"}}
    held = to.call("create_lease", body={**wanted, "hold": 1200.0})
    lease, proof = held["id"], {"token": held["token"]}
    to.call("verify_lease", pool=pool, token=held["token"])
    to.call("renew_lease", lease, body=proof)
    to.call("set_lease_hold", lease, body={"hold": 1800.0})
    to.call("put_lease_record", lease, body={**proof, "version": 0, "record": {"step": "started"}})
    to.call("keep_lease", lease, body={"lasts": 3600.0, "reason": "the disk test has failed"})
    ticket = to.call("create_lease", body={"needs": needs, "key": "build-4712"})["id"]
    other = to.call("create_lease", body={"needs": needs, "key": "build-4713"})["id"]
    to.call("get_lease", ticket)
    to.call("list_leases", pool=pool, state="waiting")
    to.call("get_pool_contents", pool)
    to.call("move_lease", other, body={"first": True})
    to.call("rehearse_pool", pool, body={"scenes": [{"limit": 2}]})
    outcome = {**proof, "result": "throttled", "detail": "HTTP 429 from the cloud"}
    to.call("report_lease_outcome", lease, body=outcome)
    to.call("retry_lease", lease, body={"key": "build-4711-second", "requeue": True})
    to.call("force_lease", ticket)
    to.call("revoke_lease", ticket, body={"reason": "maintenance"})
    spare = to.call("create_lease", body={"needs": [{"pool": "projects"}], "key": "build-4714"})
    bob, given = to.native.token("user", "shop", "bob"), spare["id"]
    to.call("offer_lease", given, body={"to": "shop/bob"})
    to.call("withdraw_lease_offer", given)
    to.call("offer_lease", given, body={"to": "shop/bob"})
    to.call("decline_lease", given, caller=bob)
    to.call("offer_lease", given, body={"to": "shop/bob"})
    taken = to.call("accept_lease", given, body={"key": "inspection-4714"}, caller=bob)
    to.call("release_lease", taken["id"])
    to.call("get_pool_report", pool, since=3600.0)
    to.call("get_pool_history", pool, since=3600.0, points=3)
    everything = {"owner": "admin", "state": "waiting", "reason": "a runaway job"}
    to.call("revoke_owner_lease", body=everything)


def bookings(to: Recorder) -> None:
    """Keep units for a time."""
    needs = [{"pool": "clusters", "units": 2}]
    start = datetime.now(UTC) + timedelta(days=1)  # noqa: TID251 - the server's clock is real
    times = {"start": start.isoformat(), "end": (start + timedelta(hours=4)).isoformat()}
    to.call("put_pool", "clusters", body={"limit": 2, "hold": 3600.0})
    to.call("list_offers", needs=["clusters=2"], duration=14400.0)
    wanted = {"needs": needs, "key": "demonstration", "note": "for visitors", **times}
    made = to.call("create_booking", body=wanted)["id"]
    to.call("get_booking", made)
    to.call("list_bookings", pool="clusters")
    to.call("change_booking", made, body={"note": "for guests", "generation": 1})
    to.call("cancel_booking", made)


def fleet(to: Recorder) -> None:
    """Let a machine report what it has."""
    to.call("put_group", "compute", body={"desired": {}})
    to.call("get_group", "compute")
    to.call("list_groups")
    to.call("put_agent", AGENT, body={"group": "compute", "labels": {"rack": "7"}})
    part = {"provider": PART, "name": "host-1", "classes": {PAGES: {"eligible": 2048}}}
    facts = {"hostname": "host-1"}
    registered = {"boot_id": BOOT, "facts": facts, "parts": [part]}
    to.call("register_agent", AGENT, body=registered)
    to.call("set_agent_desired", AGENT, body={"resource_class": PAGES, "amount": 1024})
    report = {"boot_id": BOOT, "report_generation": 1, "desired_generation_seen": 1}
    to.call(
        "put_agent_report",
        AGENT,
        body={**report, "phase": "done", "actual": {PART: {PAGES: 1024}}},
    )
    to.call("send_sign_of_life", AGENT, body={"boot_id": BOOT, "report_generation": 1})
    pages = {"groups": [{"resources": {PAGES: 512}}]}
    guest = to.call("create_claim", body={**pages, "project_id": "shop", "user_id": "alice"})
    to.call("get_start", AGENT, guest["consumer"], boot_id=BOOT)
    to.call("get_agent", AGENT)
    to.call("list_agents", group="compute")
    to.call("wait_group", "compute", body={"seconds": 3600.0})
    to.call("confirm_group", "compute")
    to.call("drain_agent", AGENT, body={"reason": "broken disk"})
    to.call("resume_agent", AGENT, body={"reason": "the disk is new"})
    to.call("expunge_agent", AGENT, body={"reason": "stolen"})
    to.call("decommission_agent", AGENT, body={"reason": "stolen", "force": True})
    to.call("enroll_agent", ROOT, body={"group": "compute"})
    to.call("give_root_agent", ROOT, body={"root": NODE})
    to.call("put_group", "unused", body={"desired": {}})
    to.call("delete_group", "unused")


def reporters(to: Recorder) -> None:
    """Share the nodes of Ironic between reporters."""
    group, member = "ironic", "reporter-1"
    joined = to.call(
        "join_reporter_group", group, member, body={"instance": INSTANCE, "ttl": 300.0}
    )
    node = {"uuid": OLD, "name": "node-2", "inventories": {"CUSTOM_GOLD": {"total": 1}}}
    sent = {"group": group, "member": member, "token": joined["token"]}
    to.call("send_reports", body={**sent, "nodes": [node]})
    to.call("get_reporter_group", group)
    to.call("list_reporter_groups")
    to.call("put_observed_members", group, body={"members": ["compute-1"], "seen_at": PAST})
    to.call("pin_nodes", group, body={"nodes": [OLD], "member": member})
    to.call("list_pins", group)
    to.call("list_reporter_group_nodes", group)
    to.call("list_reporter_group_ghosts", group)
    to.call("leave_reporter_group", group, member, instance=INSTANCE)
    to.call("delete_reporter_group", group)


def afterwards(to: Recorder) -> None:
    """Look at what has happened, and keep a copy."""
    to.call("list_audit", limit=2)
    to.call("watch", after="1.0", limit=2, wait=0.0)
    to.call("check_database")
    to.call("backup_database", body={"name": "monday.sqlite"})
    to.call("raise_epoch")
    described = to.call("get_openapi")
    to.found["get_openapi"]["answer"] = {
        name: described[name] for name in ("openapi", "info", "servers")
    }


def imported(to: Recorder) -> None:
    """Take the ledger over from OpenStack Placement."""
    source = {"source": "postgresql://placement.example.org/placement"}
    to.call("begin_import", body=source)
    to.call("abort_import")
    to.call("begin_import", body=source)
    to.call("get_import")
    gold = {"name": "CUSTOM_GOLD", "created_at": PAST, "updated_at": PAST}
    to.call("write_imported_rows", body={"traits": [gold]})
    to.call("finish_import")
