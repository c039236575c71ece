"""`moorage fleet`: the capacity of all providers."""

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from moorage.client.ledger import Ledger
from moorage.wire.ledger import (
    ClaimWanted,
    GroupAsked,
    InventoryWanted,
    ProvidersWanted,
    ProviderWanted,
)
from tests.cli.pooled import Cli
from tests.e2e.support.server import serve

HOSTS = 12
TITLES = ["class", "providers", "total", "reserved", "used", "free", "used%"]
TITLES += ["fullest", "emptiest", "ratio", "offered"]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """Return the command line in the folder of a server with twelve hosts, one of which is full."""
    folder: Path = tmp_path_factory.mktemp("fleet")
    database = folder / "moorage.sqlite"
    (folder / "moorage.toml").write_text(f'database = "sqlite:///{database}"\n')
    with serve(database, "--no-access-log") as server:
        cli = Cli(folder, server.url)
        ledger = Ledger(cli.transport)
        hosts = [
            ProviderWanted(
                uuid=str(UUID(int=number + 1)),
                name=f"host-{number:02}",
                inventories={
                    "VCPU": InventoryWanted(total=8, reserved=1 if number else 0),
                    "DISK_GB": InventoryWanted(total=100),
                },
                traits=["CUSTOM_GOLD"] if number < 5 else [],
            )
            for number in range(HOSTS)
        ]
        ledger.providers_upsert(ProvidersWanted(providers=hosts, create_vocabulary=True))
        group = GroupAsked(resources={"VCPU": 8})  # only the first host has all of its eight free
        ledger.claim(ClaimWanted(groups=[group], project_id="p", user_id="u"))
        yield cli


def test_one_line_per_class(fleet: Cli) -> None:
    """In a pipe each class is a complete line with titles."""
    title, *lines = (line.split("\t") for line in fleet.lines("fleet"))
    assert title == TITLES
    assert lines == [
        ["DISK_GB", "12", "1200", "0", "0", "1200", "0%", "0% host-00", "0% host-00", "1", "1200"],
        ["VCPU", "12", "96", "11", "8", "77", "9%", "100% host-00", "0% host-01", "1", "85"],
    ]


def test_by_trait_and_only_one_class(fleet: Cli) -> None:
    """A trait is a line of its own, and so are the providers that have none."""
    title, *lines = (
        line.split("\t") for line in fleet.lines("fleet", "--by", "trait", "--class", "VCPU")
    )
    assert title[:2] == ["class", "trait"]
    assert [line[:8] for line in lines] == [
        ["VCPU", "-", "7", "56", "7", "0", "49", "0%"],
        ["VCPU", "CUSTOM_GOLD", "5", "40", "4", "8", "28", "22%"],
    ]
    (only,) = fleet.lines("fleet", "--by", "aggregate", "--class", "CUSTOM_NONE")
    assert only.split("\t") == ["class", "aggregate", *TITLES[1:]]


def test_the_fullest_and_the_emptiest(fleet: Cli) -> None:
    """As many providers of each class as asked for, with their UUIDs."""
    title, *lines = (
        line.split("\t") for line in fleet.lines("fleet", "--providers", "2", "--class", "VCPU")
    )
    assert title == ["class", "which", "provider", "used", "capacity", "used%", "uuid"]
    assert [line[1:6] for line in lines] == [
        ["fullest", "host-00", "8", "8", "100%"],
        ["fullest", "host-01", "0", "7", "0%"],
        ["emptiest", "host-01", "0", "7", "0%"],
        ["emptiest", "host-02", "0", "7", "0%"],
    ]
    assert lines[0][6] == str(UUID(int=1))


def test_json_is_the_answer_of_the_server(fleet: Cli) -> None:
    """It has the revision, and every figure of the ledger."""
    answer = fleet.answer("fleet")
    assert answer["as_of"] == Ledger(fleet.transport).now()
    assert (answer["providers"], answer["left_out"]) == (HOSTS, 0)
    vcpu = answer["lines"][1]
    assert (vcpu["resource_class"], vcpu["capacity"], vcpu["used"]) == ("VCPU", 85, 8)
