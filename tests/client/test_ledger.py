"""The typed calls of the ledger, against a real server."""

import uuid
from pathlib import Path

import pytest

from moorage.client.ledger import Ledger
from moorage.client.transport import RefusedError, Transport
from moorage.core.limits import MAX_INT
from moorage.wire.ledger import (
    Claim,
    ClaimWanted,
    GroupAsked,
    InventoryWanted,
    ProvidersWanted,
    ProviderWanted,
)
from tests.support.warm import serve


def test_providers_claims_and_explain(tmp_path: Path) -> None:
    """Providers are created and claimed until they are full; then `explain` names the reason."""
    node, consumer = str(uuid.uuid4()), str(uuid.uuid4())
    described = ProvidersWanted(
        providers=[
            ProviderWanted(
                uuid=node,
                name="node",
                inventories={"CUSTOM_BAREMETAL": InventoryWanted(total=1)},
                traits=["CUSTOM_GOLD"],
            )
        ],
        create_vocabulary=True,
    )
    wish = ClaimWanted(
        groups=[GroupAsked(resources={"CUSTOM_BAREMETAL": 1}, required=["CUSTOM_GOLD"])],
        project_id="p",
        user_id="u",
        consumer=consumer,
        choose="pack",
    )
    with serve(tmp_path / "m.sqlite", "--no-access-log") as server:
        secret = (tmp_path / "m.sqlite.token").read_text().strip()
        ledger = Ledger(Transport(server.url, secret))
        assert ledger.providers_upsert(described).results[0].outcome == "created"
        assert ledger.providers_upsert(described).unchanged == 1
        assert ledger.explain(wish).found
        assert ledger.claim(wish) == Claim(
            consumer=consumer,
            generation=1,
            allocations={node: {"CUSTOM_BAREMETAL": 1}},
            mappings={"": [node]},
        )
        with pytest.raises(RefusedError) as twice:
            ledger.claim(wish)
        assert twice.value.code == "consumer_generation"
        with pytest.raises(RefusedError) as full:
            ledger.claim(
                ClaimWanted(groups=wish.groups, project_id="p", user_id="u", consumer=None)
            )
        assert full.value.code == "no_capacity"
        answer = ledger.explain(wish)
        assert not answer.found and answer.parts[0].steps[-1].left == 0
        assert answer.nearest == "CUSTOM_BAREMETAL: the nearest provider has 0 of the required 1."


def test_the_default_of_max_unit_is_the_largest_amount() -> None:
    """The wire module imports nothing from the core, so it repeats the bound."""
    assert InventoryWanted(total=1).max_unit == MAX_INT
