"""The page of pools shows which pools requests make."""

from tests.faces.dashboard.support.browserless import signed_in
from tests.faces.v1.native import Native

PATH = "/v1/pool-templates/page-templates/*"


def test_templates_stand_below_the_pools(native: Native) -> None:
    """As long as an operator wants them."""
    assert native.ask("PUT", PATH, {"pool": {"limit": 3}, "idle": 90}).status == 200
    asked = {"needs": [{"pool": "page-templates/one"}], "key": "templates"}
    assert native.ask("POST", "/v1/leases", asked).status == 201
    reader = signed_in(native, "reader")
    text = reader.get("/ui/pools").document.text
    assert "Made on demand" in text
    assert {"page-templates/*", "page-templates/one"} <= {*text.split()}
    assert native.ask("DELETE", PATH).status == 204
    assert "page-templates/*" not in reader.get("/ui/pools").document.text
