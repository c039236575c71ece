"""Rendering: in pieces, and without characters that act on a page."""

from moorage.faces.dashboard.rendering import environment, rendered

ROWS = 5_000


def pauses(text: str, **variables: object) -> tuple[int, str]:
    """Render a template; return how often others had their turn, and the text."""
    work, number = rendered(environment().from_string(text), variables), 0
    while True:
        try:
            next(work)
        except StopIteration as stop:
            return number, stop.value
        number += 1


def test_a_long_page_is_rendered_in_pieces() -> None:
    """Thousands of rows hold nobody up; the text is the same as in one piece."""
    number, text = pauses("{% for one in rows %}{{ one }};{% endfor %}", rows=range(ROWS))
    assert text == "".join(f"{one};" for one in range(ROWS))
    assert number > ROWS / 50
    assert pauses("{{ one }}", one=1) == (0, "1")


def test_what_a_silent_agent_reported_is_no_fact() -> None:
    """A lost machine is not shown as ready, but as ready when it was last heard."""
    text = '{% import "fleet_macros.html" as fleet %}{{ fleet.readiness_of(agent) }}'
    for liveness, shown in (
        ("fresh", '<span class="state ok">ready</span>'),
        ("late", "ready when last heard"),
        ("lost", "ready when last heard"),
    ):
        agent = {"liveness": liveness, "readiness": "ready"}
        assert pauses(text, agent=agent)[1].strip() == shown


def test_what_acts_on_a_page_is_replaced() -> None:
    """In texts and attributes; markup of macros and of filters stays."""
    macro = "{% macro m(x) %}<b>{{ x }}</b>\n{% endmacro %}"
    evil = "a\u202eb\x1b\U000e0041<"
    shown = pauses(f'{macro}<i title="{{{{ x }}}}">{{{{ m(x) }}}}{{{{ x | json }}}}</i>', x=evil)[1]
    assert '<i title="a\ufffdb\ufffd\ufffd&lt;"><b>a\ufffdb\ufffd\ufffd&lt;</b>\n' in shown
    assert not any(one in shown for one in evil[1:-1] if not one.isascii())
