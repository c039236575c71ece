"""What the policy blocks, and sessions that end."""

import pytest

from tests.browser.conftest import Open
from tests.browser.example_ledger import POOL, ExampleLedger

SINKS = (
    "document.body.innerHTML = '<b>x</b>'",
    "document.body.insertAdjacentHTML('beforeend', '<b>x</b>')",
    "new DOMParser().parseFromString('<b>x</b>', 'text/html')",
    "document.createElement('script').src = '/ui/static/x/live.js'",
    "document.createElement('script').text = 'alert(1)'",
    "setTimeout('window.ran = 1')",
    "trustedTypes.createPolicy('other', {createHTML: (text) => text})",
    "trustedTypes.createPolicy('moorage', {createHTML: (text) => text})",
)


@pytest.mark.parametrize("sink", SINKS)
def test_any_other_sink_throws(open_page: Open, sink: str) -> None:
    """Only the one policy may make HTML from text, and nobody can make another."""
    watched = open_page("/ui/pools")
    watched.live()
    thrown = watched.page.evaluate(
        f"() => {{ try {{ {sink}; return ''; }} catch (e) {{ return e.name; }} }}"
    )
    assert thrown in {"TypeError", "EvalError"}, thrown


@pytest.mark.parametrize(
    "make",
    [
        "const one = document.createElement('script'); one.textContent = 'window.ran = 1';",
        "const one = document.createElement('img'); one.setAttribute('onerror', 'window.ran = 1');"
        " one.src = '/ui/static/x/none.svg';",
        "const one = document.createElement('iframe'); one.src = 'https://example.org/';",
        "const one = document.createElement('img'); one.src = 'https://example.org/x.png';",
    ],
)
def test_what_is_injected_does_not_run(open_page: Open, make: str) -> None:
    """Inline scripts, handlers, frames and files from elsewhere are blocked and reported."""
    watched = open_page("/ui/pools")
    watched.live()
    with watched.page.expect_console_message(lambda message: message.type == "error"):
        watched.page.evaluate(
            f"() => {{ try {{ {make} document.body.append(one); }} catch (e) {{}} }}"
        )
    assert watched.page.evaluate("window.ran") is None
    assert watched.problems != [], "the control: a violation is seen"


def test_a_stolen_session_dies_with_its_token(open_page: Open, ledger: ExampleLedger) -> None:
    """An open page says so at the next change."""
    made = ledger.native.ask("POST", "/v1/tokens", {"name": "thief", "role": "reader"})
    watched = open_page("/ui")
    watched.page.context.clear_cookies()
    watched.sign_in(made.body["token"])
    watched.go("/ui/pools")
    watched.live()
    assert ledger.native.ask("DELETE", f"/v1/tokens/{made.body['id']}").status == 204
    for word in ("pause", "resume"):
        assert ledger.native.ask("POST", f"/v1/pools/{POOL}:{word}", {}).status == 200
    watched.page.wait_for_selector("#token")
