"""The pages of the native API: every operation, found by its words, with its example."""

import json
import re
from dataclasses import is_dataclass
from html import unescape

import pytest

from moorage.faces.v1.openapi import EXAMPLES
from moorage.wire.operations import operations_by_id
from tests.faces.dashboard.support.browserless import Browser, signed_in
from tests.faces.v1.native import Native


@pytest.fixture(scope="module", params=[None, "shop"], ids=["all", "one project"])
def browser(request: pytest.FixtureRequest, native: Native) -> Browser:
    """Return the browser of somebody who may only read, in all projects or in one."""
    return signed_in(native, "reader", request.param)


def links(browser: Browser, address: str) -> set[str]:
    """Return the operations that a page links to."""
    found = browser.get(address)
    assert found.status == 200
    begin = "/ui/api/"
    return {one.removeprefix(begin) for one in found.document.links if one.startswith(begin)}


def test_every_operation_is_listed(browser: Browser) -> None:
    """Every page leads there, and nothing of it is hidden from readers."""
    assert "/ui/api" in browser.get("/ui/pools").document.links
    assert links(browser, "/ui/api") == {*operations_by_id()}


def test_operations_are_found_by_their_words(browser: Browser) -> None:
    """All words must be there, in any case, also those of parameters."""
    assert "renew_lease" in links(browser, "/ui/api?q=RENEW+lease")
    assert "renew_lease" not in links(browser, "/ui/api?q=renew+pool%20report")
    assert links(browser, "/ui/api?q=key_prefix") == {"list_leases"}
    assert links(browser, "/ui/api?q=lease+zebra") == set()
    assert "<b>" not in browser.get("/ui/api?q=%3Cb%3Ex").body


def test_every_operation_has_a_page(browser: Browser) -> None:
    """With its parameters, the types of body and answer, and the example as it was recorded."""
    examples = json.loads(EXAMPLES.read_text())
    for name, operation in operations_by_id().items():
        page = browser.get(f"/ui/api/{name}")
        assert page.status == 200, name
        text = unescape(re.sub("<[^>]*>", "", page.body))
        assert operation.summary.replace("`", "") in text, name
        for kind in (operation.content.body, operation.content.answer):
            if is_dataclass(kind):
                assert f'id="type-{kind.__name__}"' in page.body, name
        answer = examples[name]["answer"]
        if answer is not None:
            assert json.dumps(answer, indent=2, ensure_ascii=False) in text, name
        assert "\ufffd" not in page.body, name
        anchors = {one for one in page.document.links if one.startswith("#type-")}
        assert all(f'id="{one[1:]}"' in page.body for one in anchors), name


def test_an_operation_that_is_not_there(browser: Browser) -> None:
    """It is refused as any page that is not there."""
    assert browser.get("/ui/api/create_leases").status == 404
