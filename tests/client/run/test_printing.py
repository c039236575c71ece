"""Text from outside is printed without characters that control a terminal or a log."""

import io
import json
import sys
import unicodedata
from pathlib import Path

import pytest

from moorage.client.main import main
from moorage.client.run.api_types import LeaseRequest, Waiting
from moorage.client.run.handles.file import Handle, HandleEntry
from moorage.client.run.printing import printable, printable_json
from moorage.client.run.progress import Progress, standing_of
from tests.client.run.test_keeping import serving_lease

CLIPBOARD = "\x1b]52;c;cm0gLXJmIH4K\x07"
"""An escape sequence that writes the clipboard in many terminals."""


def test_escapes_are_visible() -> None:
    """Unprintable characters are shown as Python escapes; all others stay unchanged."""
    assert printable("plain, jöb 17") == "plain, jöb 17"
    assert printable(CLIPBOARD) == "\\x1b]52;c;cm0gLXJmIH4K\\x07"
    assert printable("a\nb\tc\r") == "a\\nb\\tc\\r"
    assert printable("\x9b31m\u202e\u2028\U000e0001") == "\\x9b31m\\u202e\\u2028\\U000e0001"


def test_marks_do_not_cover_other_lines() -> None:
    """Names of providers may have any number of them; letters that show nothing are shown."""
    assert printable("h" + "\u0301" * 6) == "h" + "\u0301" * 4 + "\\u0301" * 2
    assert printable("\u3164") == "\\u3164"
    assert json.loads(printable_json('"h' + "\u0301" * 9 + '"')) == "h" + "\u0301" * 9


def test_no_character_gets_through() -> None:
    """No control, format, separator or surrogate character is printed."""
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    shown = printable(every)
    kinds = {unicodedata.category(one) for one in shown}
    assert kinds.isdisjoint({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def test_json_keeps_its_meaning() -> None:
    """The escaped JSON text has the same value and the same line breaks."""
    value = {"owner": CLIPBOARD, "key": "\x9b\u202e\U000e0001", "note": ["é", "a\nb"]}
    raw = json.dumps(value, indent=2, ensure_ascii=False)
    shown = printable_json(raw)
    assert json.loads(shown) == value
    assert all(one.isprintable() or one == "\n" for one in shown)
    assert shown.count("\n") == raw.count("\n")
    assert not raw.replace("\n", "").isprintable()


def test_notices_of_a_command() -> None:
    """A reason from the server cannot send control sequences to a terminal or a CI page."""
    output = io.StringIO()
    notices = Progress(output)
    reason = f"limit: 1 of 1 units of demo are held by {CLIPBOARD} (1)"
    waiting = Waiting(1, None, reason)
    notices.standing(standing_of("demo", waiting, 1.0, None), 0.0)
    notices.say(f"the lease was revoked: {CLIPBOARD}")
    lines = output.getvalue().splitlines()
    assert len(lines) == 2
    assert all("\\x1b]52" in line and line.isprintable() for line in lines)


def test_the_reason_of_a_revocation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The reason of a revocation is shown as text, on the line of its lease."""
    handle = Handle(str(tmp_path / "handle"))
    with handle.locked():
        handle.put(HandleEntry("k", LeaseRequest((("a", 1),)), id="l1"))
    with serving_lease("waits") as server:
        server.more = {"detail": f"{CLIPBOARD}\nl2\tgranted"}
        server.cause = "revoked"
        where = ["--handle", handle.path, "--url", f"http://127.0.0.1:{server.server_port}"]
        assert main(["lease", "status", *where], ("moorage",)) == 3
    _, output = capsys.readouterr().out.splitlines()
    cells = output.split("\t")
    assert cells[:3] == ["l1", "ended", "a"]
    assert cells[-1] == f"revoked: {printable(CLIPBOARD)}\\nl2\\tgranted"
