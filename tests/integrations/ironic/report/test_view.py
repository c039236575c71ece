"""What a reporter shows while it runs."""

import logging

import pytest

from moorage.cli.support.views.report_view import Shown, view
from moorage.integrations.ironic.report.reporter import Progress

ERASE = "\r\x1b[K"


def test_a_log_has_only_what_changed(capsys: pytest.CaptureFixture[str]) -> None:
    """Passes that find nothing new write nothing, so that hours of them do not fill a journal."""
    shown = Shown(live=False)
    for known in (1, 1, 2):
        shown("ironic/a", Progress(known=known, own=1, members=("a",)))
    assert capsys.readouterr().err.splitlines() == [
        "ironic/a: 1 of 1 node, 1 member; last pass: 0 nodes sent",
        "ironic/a: 1 of 2 nodes, 1 member; last pass: 0 nodes sent",
    ]


def test_a_terminal_has_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is as wide as the terminal, and other lines replace it instead of continuing it."""
    monkeypatch.setenv("COLUMNS", "40")
    handler = logging.StreamHandler()
    logging.getLogger().addHandler(handler)
    try:
        with view(live=True) as shown:
            shown("ironic/a", Progress(known=2, own=1, members=("a",), trouble="x" * 100))
            logging.getLogger("moorage.ironic").warning("trouble")
            shown("ironic/a", Progress(known=2, own=1, members=("a",)))
            shown.say("moorage: reporting 1 node as ironic/a")
    finally:
        logging.getLogger().removeHandler(handler)
    printed = capsys.readouterr()
    assert printed.out == "moorage: reporting 1 node as ironic/a\n"
    first, second, *_ = printed.err.split("trouble\n")
    assert first.startswith(f"{ERASE}ironic/a: 1 of 2 nodes, 1 member; last {ERASE}")
    assert second.endswith(f"{ERASE}\n")
