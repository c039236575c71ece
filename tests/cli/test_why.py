"""`moorage lease why` finds leases by their id or by the host that they are for."""

from pathlib import Path
from uuid import uuid4

from moorage.wire.admission import PoolWanted
from tests.cli.pooled import Cli
from tests.e2e.support.server import serve

NODE = "6e0f3c52-0000-4000-8000-000000000001"


def test_why(tmp_path: Path) -> None:
    """A holder is found by its name, by its UUID and by the id of its lease; so is a ticket."""
    with serve(tmp_path / "moorage.sqlite") as server:
        (tmp_path / "moorage.toml").write_text('database = "sqlite:///moorage.sqlite"\n')
        cli = Cli(tmp_path, server.url)
        cli.admission.pool_put("deploy", PoolWanted(limit=1))
        labels = {"holder": "node-1", "node": NODE, "verb": "active", "conductor": "c-1"}
        held = cli.ask("deploy", labels=labels)
        waits = cli.ask("deploy", labels={"holder": "node-2", "verb": "rebuild"})
        for name in ("node-1", NODE, held):
            (found,) = cli.answer("lease", "why", name)
            assert found["id"] == held
        said = dict(line.split("\t") for line in cli.lines("lease", "why", "node-1"))
        assert (said["verb"], said["conductor"], said["state"]) == ("active", "c-1", "granted")
        said = dict(line.split("\t") for line in cli.lines("lease", "why", "node-2"))
        assert (said["place"], said["id"]) == ("1", waits)
        assert "node-1" in said["reason"]
        assert "node-9" in cli.refusal(7, "lease", "why", "node-9")
        titles = cli.lines("lease", "list")[0].split("\t")
        assert titles[-2:] == ["verb", "conductor"]
        shown = cli.lines("top", "--once")[1]
        assert f"node-2 ({cli.answer('lease', 'why', waits)[0]['owner']}) rebuild" in shown


def test_who_is_asked_to_stop(cli: Cli) -> None:
    """The ticket says that leases stop for it; the list says which, and for which ticket."""
    pool = f"stopping-{uuid4().hex[:8]}"
    cli.lines("pool", "create", pool, "--limit", "2")
    stays, stops = cli.ask(pool), cli.ask(pool, preemptible=600.0)
    cli.admission.renew(stops)  # its holder knows of it
    ticket = cli.ask(pool, priority=1)
    listed = cli.lines("lease", "list", "--pool", pool, "--wide")
    remarks = {one: line for line in listed for one in (stays, stops) if f"\t{one}" in f"\t{line}"}
    assert f"asked to stop for {ticket}" in remarks[stops]
    assert "asked to stop" not in remarks[stays]
    assert f"remark\tasked to stop for {ticket}" in cli.lines("lease", "why", stops)
    (audited,) = [line for line in cli.lines("audit", stops) if "lease.preempt" in line]
    assert f"owner: admin; for: {ticket}; " in audited
    assert "->" not in audited  # nothing of the lease has another value
