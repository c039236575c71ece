"""The page of a pool shows its named slots, and who has them."""

from uuid import uuid4

from tests.faces.dashboard.support.browserless import signed_in
from tests.faces.dashboard.support.elements import every
from tests.faces.v1.native import Native


def test_slots_are_shown_with_their_holders(native: Native) -> None:
    """State, labels, the holder with a link to the lease, and why one is drained."""
    pool = f"slots-{uuid4()}"
    assert native.ask("PUT", f"/v1/pools/{pool}", {"native_slots": True}).status < 300
    browser = signed_in(native, "reader")
    empty = browser.get(f"/ui/pools/{pool}").document
    assert f"moorage pool slot add {pool} NAME" in empty.text
    for name, labels in (("eu-1", {"region": "eu"}), ("us-1", {"region": "us"})):
        wanted = {"names": [name], "labels": labels}
        assert native.ask("POST", f"/v1/pools/{pool}:slots", wanted).status < 300
    needs = [{"pool": pool, "units": 1, "labels": {"region": "eu"}}]
    body = {"needs": needs, "key": pool, "ttl": 600, "labels": {"job": "e2e-7", "host": "h"}}
    lease = native.ask("POST", "/v1/leases", body).body["id"]
    drain = f"/v1/pools/{pool}:slots/us-1/drain"
    assert native.ask("POST", drain, {"keep": True, "reason": "new quota"}).status == 200
    page = browser.get(f"/ui/pools/{pool}")
    (table,) = [one for one in every(page, "table") if "Holder" in one.text and "Slot" in one.text]
    held, drained = (row.text for row in table.all("tr")[1:])
    assert "eu-1" in held and "held" in held and "e2e-7" in held and "region eu" in held
    assert "us-1" in drained and "drained" in drained and "new quota" in drained
    assert f"/ui/leases/{lease}" in page.document.links


def test_a_pool_without_slots_has_no_such_section(native: Native) -> None:
    """Most pools have none."""
    pool = f"plain-{uuid4()}"
    native.ask("PUT", f"/v1/pools/{pool}", {"limit": 1})
    page = signed_in(native, "reader").get(f"/ui/pools/{pool}")
    assert "Slots" not in page.document.text
