"""The typed client of reporters against a real server."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from moorage.client.reporting import CHUNK, Reporting
from moorage.client.transport import RefusedError, Transport
from moorage.wire.ledger import InventoryWanted
from moorage.wire.rendezvous import owner
from moorage.wire.reporting import (
    MemberWanted,
    NodeReported,
    ObservedWanted,
    PinsWanted,
    ReportWanted,
)
from tests.support.warm import serve


@pytest.fixture(scope="module")
def reporting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reporting]:
    """Return an administrator's client."""
    database = tmp_path_factory.mktemp("client") / "moorage.sqlite"
    with serve(database, "--no-access-log") as server:
        yield Reporting(Transport(server.url, Path(f"{database}.token").read_text().strip()))


def nodes(count: int) -> list[NodeReported]:
    """Return new nodes."""
    uuids = sorted(str(uuid4()) for _ in range(count))
    inventories = {"CUSTOM_GOLD": InventoryWanted(total=1)}
    return [NodeReported(uuid=uuid, name=uuid, inventories=inventories) for uuid in uuids]


def test_two_reporters_share_their_nodes(reporting: Reporting) -> None:
    """Each picks its own; a long report is sent in parts; together they report all."""
    found = nodes(CHUNK + 200)
    tokens = {}
    for name in ("a:1", "b"):
        wanted = MemberWanted(instance=str(uuid4()), ttl=60)
        tokens[name] = reporting.join("share", name, wanted).token
    live = reporting.join("share", "b", wanted).members
    assert live == ["a:1", "b"]
    for name, token in tokens.items():
        own = [one for one in found if owner(one.uuid, live) == name]
        wanted_report = ReportWanted(group="share", member=name, token=token, nodes=own)
        assert reporting.report(wanted_report).created == len(own)
    everything = ReportWanted(group="share", member="b", token=tokens["b"], nodes=found)
    answer = reporting.report(everything)
    assert answer.unchanged == sum(owner(one.uuid, live) == "b" for one in found)
    assert answer.codes == {"not_owner": answer.refused}
    assert [one.uuid for one in answer.results] == [one.uuid for one in found]


def test_membership_and_pins(reporting: Reporting) -> None:
    """A fenced instance is refused; pins are listed; who has left is gone."""
    first, second = str(uuid4()), str(uuid4())
    reporting.join("pins", "a", MemberWanted(instance=first))
    token = reporting.join("pins", "a", MemberWanted(instance=second)).token
    with pytest.raises(RefusedError) as fenced:
        reporting.join("pins", "a", MemberWanted(instance=first))
    assert fenced.value.code == "fenced"
    (one,) = nodes(1)
    group = reporting.pin("pins", PinsWanted(nodes=[one.uuid], member="b"))
    assert (group.pins_generation, group.pinned_elsewhere) == (1, 1)
    assert reporting.pins("pins") == {one.uuid: "b"}
    report = ReportWanted(group="pins", member="a", token=token, nodes=[one])
    assert reporting.report(report).codes == {"not_owner": 1}
    reporting.leave("pins", "a", second)
    reporting.leave("pins", "a")
    assert reporting.group("pins").members == []
    assert "pins" in list(reporting.groups())
    assert list(reporting.ghosts("pins")) == []


def test_observed_members(reporting: Reporting) -> None:
    """The list of an observer is shown with its time."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    seen = ObservedWanted(members=["c1"], seen_at=now)
    assert reporting.observed("seen", seen).seen_at == now
    assert reporting.group("seen").observed == ["c1"]
