"""A compute service that sends a plan when it starts: the real agent, a real server, kills."""

import json
import random
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

from moorage.client.transport import Transport, UnreachableError
from moorage.core.limits import MACHINE_RESHAPES_MAX
from moorage.wire.fleet import AgentWanted
from tests.client.single import SECONDS, Started, started
from tests.e2e.ledger.test_reshapes import call, client, database
from tests.e2e.support.carried import eventually
from tests.e2e.support.server import Server, serve
from tests.support import cluster
from tests.support.fake_kernel import FakeKernel

__all__ = ["database"]

ROOT = str(UUID(int=1))
CARD = str(uuid5(UUID(ROOT), "host_gpu0"))
GUEST = str(UUID(int=100))
OPTIONS = ("--auth", "noauth2", "--no-access-log")
KILLS = 6
PLAN: dict[str, Any] = {
    "create": [{"uuid": CARD, "name": "host_gpu0", "parent": ROOT}],
    "moves": [
        {
            "from": {"provider": ROOT, "class": "VGPU"},
            "to": {"provider": CARD, "class": "VGPU"},
            "assign": {GUEST: {CARD: 3}},
        }
    ],
    "traits": {CARD: ["HW_GPU_API_VULKAN"]},
}


def furnish(server: Server) -> None:
    """Create the host with a guest on it, and its agent."""
    host: dict[str, Any] = {"uuid": ROOT, "name": "host", "inventories": {"VGPU": {"total": 4}}}
    assert call(server, "POST", "/v1/providers:bulk", {"providers": [host]})[0] == 200
    claim = {
        "allocations": {ROOT: {"resources": {"VGPU": 3}}},
        "project_id": "project",
        "user_id": "user",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    assert call(server, "PUT", f"/allocations/{GUEST}", claim)[0] == 204
    client(server).fleet.agent_put(ROOT, AgentWanted())


def where(server: Server) -> set[str]:
    """Return on which providers the guest is; whatever it is, the ledger agrees with itself."""
    found = call(server, "GET", f"/allocations/{GUEST}")[1]["allocations"]
    assert [one["resources"] for one in found.values()] == [{"VGPU": 3}]
    assert call(server, "POST", "/v1/database/check", {})[1]["differences"] == []
    return set(found)


class Host:
    """The machine in a folder, whose real agent is started with a plan."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.folder, self.server = folder, server
        self.kernel = FakeKernel.made(folder / "machine")
        self.file = folder / "plan.json"
        self.file.write_text(json.dumps(PLAN))

    def start(self) -> Started:
        """Start the single file."""
        places = {"--sysfs": "machine/sys", "--procfs": "machine/proc", "--lock-file": "lock"}
        given = [word for name, path in places.items() for word in (name, str(self.folder / path))]
        asked = ["--url", self.server.url, "--token", "admin", "--plan", str(self.file)]
        return started("agent", "run", "--reservoir", "hugepages", "--root", ROOT, *given, *asked)

    def run(self) -> str:
        """Let the agent live until it has spoken of the plan and is done; return what it said."""
        with self.start() as process:
            said = []
            assert process.stderr is not None
            for line in process.stderr:
                said.append(line)
                if " plan" in line:
                    break
            eventually(lambda: self.is_done() or None, SECONDS)
            process.send_signal(signal.SIGTERM)
            said += process.stderr
            assert process.wait(SECONDS) == 0, said
        return "".join(said)

    def is_done(self) -> bool:
        """Return whether the first pass of this boot is reported."""
        shown = call(self.server, "GET", f"/v1/agents/{ROOT}")[1]
        return (shown["boot_id"], shown["phase"]) == (self.boot, "done")

    @property
    def boot(self) -> str:
        """The id of the present boot."""
        return (self.folder / "machine/proc/sys/kernel/random/boot_id").read_text().strip()


def reshapes(server: Server) -> list[str]:
    """Return all reshapes, the last one first."""
    return [one.id for one in client(server).reshapes.all()]


def failure(server: Server) -> Any:
    """Return the failure that the host shows."""
    return call(server, "GET", f"/v1/agents/{ROOT}")[1]["failure"]


def test_the_real_agent_starts_with_a_plan(database: str, tmp_path: Path) -> None:
    """Carried out once; again after the next boot only if an operator has undone it."""
    with serve(database, *OPTIONS) as server:
        furnish(server)
        host = Host(tmp_path, server)
        said = host.run()
        (first,) = reshapes(server)
        assert f"the plan is carried out, as reshape {first}" in said
        assert where(server) == {CARD}
        assert f"as reshape {first}" in host.run()  # a restart of the service
        host.kernel.boot()
        assert "the plan is satisfied" in host.run()
        assert reshapes(server) == [first]
        client(server).reshapes.undo(first)
        assert where(server) == {ROOT}
        host.kernel.boot()
        said = host.run()
        assert "the plan is carried out" in said
        assert len(reshapes(server)) == 3
        client(server).reshapes.undo(reshapes(server)[0])
        assert "an operator has undone it" in host.run()
        assert where(server) == {ROOT}


def test_a_refused_plan_leaves_the_agent_at_work(tmp_path: Path) -> None:
    """It says the violations once, reports without the plan, and the host shows the failure."""
    with serve(tmp_path / "m.sqlite", *OPTIONS) as server:
        furnish(server)
        host = Host(tmp_path, server)
        host.file.write_text(json.dumps({**PLAN, "moves": [{**PLAN["moves"][0], "assign": {}}]}))
        said = host.run()
        assert said.count("the plan is refused") == 1
        assert said.count("violation unassigned") == 1
        assert said.count("registered") == 1
        shown = call(server, "GET", f"/v1/agents/{ROOT}")[1]
        assert (shown["readiness"], shown["failure"]["code"]) == ("ready", "plan_refused")
        assert GUEST in shown["failure"]["message"]
        assert where(server) == {ROOT}
        host.file.unlink()
        with host.start() as process:
            eventually(lambda: failure(server) is None or None, SECONDS)
            process.send_signal(signal.SIGTERM)
            assert "there is no plan" in process.communicate(timeout=SECONDS)[1]


def registered(server: Server, boot: int) -> int:
    """Register a boot of the host; return the generation of its next report."""
    body = {"boot_id": f"boot-{boot}", "facts": {"hostname": "host"}, "root": ROOT, "parts": []}
    orders = Transport(server.url, "admin").request("POST", f"/v1/agents/{ROOT}/register", body)
    return int(orders["report_generation"]) + 1


def outcome(server: Server, boot: int, generation: int) -> tuple[str, str]:
    """Send a report with the plan; return what became of it, and the reshape."""
    body = {
        "boot_id": f"boot-{boot}",
        "report_generation": generation,
        "desired_generation_seen": 0,
        "phase": "done",
        "actual": {},
        "plan": PLAN,
    }
    orders = Transport(server.url, "admin").request("PUT", f"/v1/agents/{ROOT}/report", body)
    return orders["plan"]["outcome"], orders["plan"]["reshape"]


def test_killed_again_and_again(database: str) -> None:
    """After each kill the plan and its report are there, or neither; asked again, both, once."""
    choice = random.Random(44)
    boot, generation, killed, halfway = 0, 0, 0, set()
    for kill in range(KILLS + 1):
        with serve(database, *OPTIONS) as server:
            if kill == 0:
                furnish(server)
            agent = call(server, "GET", f"/v1/agents/{ROOT}")[1]
            if boot and agent["boot_id"] == f"boot-{boot}" and generation:
                counted = agent["report_generation"] == generation
                by_plan = agent["plan"] is not None and agent["plan"]["boot_id"] == f"boot-{boot}"
                assert counted == by_plan
                before = len(reshapes(server))
                what, reshape = outcome(server, boot, generation)
                assert len(reshapes(server)) == before + (not counted)
                assert where(server) == ({ROOT} if what == "undone" else {CARD})
                halfway.add((counted, what))
                if what != "undone":
                    client(server).reshapes.undo(reshape)
            if kill == KILLS:
                break
            ends = threading.Timer(0.2 + 0.4 * choice.random(), server.stop, [signal.SIGKILL])
            ends.start()
            try:
                for _ in range(MACHINE_RESHAPES_MAX - 2):
                    boot, generation = boot + 1, 0
                    generation = registered(server, boot)
                    what, reshape = outcome(server, boot, generation)
                    assert what == "done"
                    client(server).reshapes.undo(reshape)
                while True:  # a server carries out no more plans of one machine
                    client(server).ledger.now()
            except UnreachableError:
                killed += 1
            finally:
                ends.join()
    assert killed == KILLS
    assert halfway, "no kill came between a register and the undo"


def test_two_servers_carry_it_out_once() -> None:
    """A machine that asks another server again, because the first one is slow, gets its answer."""
    url = cluster.fresh()
    with serve(url, *OPTIONS) as one, serve(url, *OPTIONS) as two:
        furnish(one)
        for boot in range(1, 9):
            generation = registered(one, boot)
            with ThreadPoolExecutor(2) as pool:
                asked = [pool.submit(outcome, each, boot, generation) for each in (one, two)]
            found = [each.result() for each in asked]
            (what,) = set(found)
            assert (what[0], where(two)) == ("done", {CARD})
            client(two).reshapes.undo(what[1])
        assert len(reshapes(one)) == 16
    cluster.shared().drop(cluster.database_of(url))
