"""The typed client against a real server: lists, changes, administration, and users' rights."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from moorage.client.ledger import Ledger
from moorage.client.transport import RefusedError, Transport
from moorage.wire.admin import TokenWanted
from moorage.wire.ledger import (
    ClaimWanted,
    GroupAsked,
    InventoryWanted,
    ProvidersWanted,
    ProviderWanted,
    Question,
)
from tests.support.warm import serve

COUNT = 1_005
"""More than one page."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Return the URL of a server and its administrator's token."""
    database = tmp_path_factory.mktemp("client") / "moorage.sqlite"
    with serve(database, "--no-access-log") as server:
        yield server.url, Path(f"{database}.token").read_text().strip()


@pytest.fixture
def ledger(served: tuple[str, str]) -> Ledger:
    """Return the administrator's client."""
    return Ledger(Transport(*served))


def new_providers(count: int, **totals: int) -> ProvidersWanted:
    """Return new providers, each with these totals."""
    inventories = {name: InventoryWanted(total=total) for name, total in totals.items()}
    uuids = [str(uuid4()) for _ in range(count)]
    return ProvidersWanted(
        providers=[ProviderWanted(uuid=uuid, name=uuid, inventories=inventories) for uuid in uuids]
    )


def groups_of(**resources: int) -> list[GroupAsked]:
    """Return a query for amounts from one tree."""
    return [GroupAsked(resources=resources)]


def test_a_list_and_the_changes_after_it(ledger: Ledger) -> None:
    """A list together with the changes after its cursor is complete."""
    begin = ledger.providers_page().as_of
    wanted = new_providers(COUNT, VCPU=4)
    assert ledger.providers_upsert(wanted).created == COUNT
    shown = [*ledger.providers()]
    assert [one.uuid for one in shown] == sorted(one.uuid for one in wanted.providers)
    assert {one.inventories["VCPU"].total for one in shown} == {4}
    claim = ledger.claim(ClaimWanted(groups=groups_of(VCPU=3), project_id="p", user_id="u"))
    watch = ledger.watch(begin, ["consumer", "provider"])
    seen = []
    for change in watch:
        seen.append(change)
        if change.kind == "consumer":
            watch.close()
    assert {change.key for change in seen} == {one.uuid for one in shown} | {claim.consumer}
    assert seen[-1].value.allocations == claim.allocations
    after = ledger.watch(ledger.providers_page().as_of)
    assert after.cursor == watch.cursor


def test_administration(ledger: Ledger) -> None:
    """Tokens and audit rows are returned as lists."""
    made = ledger.token_create(TokenWanted(name="bob", role="reader"))
    assert [token.id for token in ledger.tokens()][-1] == made.id
    ledger.token_revoke(made.id)
    newest = next(ledger.audit())
    assert (newest.action, newest.target, newest.who) == ("token.revoke", made.id, "admin")
    actions = [entry.action for entry in ledger.audit(made.id)]
    assert actions == ["token.revoke", "token.create"]


def test_a_user_claims_for_its_own_project_only(served: tuple[str, str], ledger: Ledger) -> None:
    """A user's token is bound to a project; it may explain, but not list or follow all changes."""
    made = ledger.token_create(TokenWanted(name="eve", role="user", project_id="p1"))
    user = Ledger(Transport(served[0], made.token))
    offered = new_providers(1, MEMORY_MB=9)
    ledger.providers_upsert(offered)
    wish = groups_of(MEMORY_MB=1)
    claim = user.claim(ClaimWanted(groups=wish, project_id="p1", user_id="u"))
    assert [*claim.allocations] == [offered.providers[0].uuid]
    assert user.explain(Question(groups=wish)).found
    with pytest.raises(RefusedError) as refused:
        user.claim(ClaimWanted(groups=wish, project_id="p2", user_id="u"))
    assert (refused.value.status, refused.value.code) == (403, "forbidden")
    for act in (lambda: next(user.providers()), lambda: next(iter(user.watch()))):
        with pytest.raises(RefusedError) as refused:
            act()
        assert refused.value.status == 403


def test_a_bulk_change_leaves_one_audit_row(ledger: Ledger) -> None:
    """Only changes are counted; a bulk request without changes has no audit row."""
    wanted = new_providers(3)
    for _ in range(2):
        ledger.providers_upsert(wanted)
    newest, before, *_ = ledger.audit()
    assert (newest.action, newest.target) == ("providers.bulk", "3 providers")
    assert newest.after == {"created": 3, "updated": 0, "unchanged": 0, "refused": 0}
    assert before.target != newest.target
