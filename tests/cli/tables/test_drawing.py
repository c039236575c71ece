"""What is drawn of a table on a terminal of any width."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.cli.support.tables import EXTRA, ROOM, Cell, Column, draw
from moorage.cli.support.terminal import width_of
from moorage.cli.support.views.cells import end_cell, id_cells
from moorage.core.ages import age_text

COLUMNS = (
    Column("id"),
    Column("who", least=6, dropped=1),
    Column("size", dropped=2, right=True),
    Column("why", "reason", least=8, last=True),
    Column("more", dropped=3),
)

TEXTS = st.text(max_size=30)


@given(st.lists(st.tuples(*[TEXTS] * len(COLUMNS)), max_size=5), st.integers(1, 120))
def test_no_line_is_wider_than_the_terminal(rows: list[tuple[str, ...]], width: int) -> None:
    """Each row is one line. It is too wide only where not even four cells per column fit."""
    drawn = draw(COLUMNS, rows, width)
    assert len(drawn.rows) == len(rows)
    if width >= 12:
        assert all(width_of(line) <= width for line in drawn.lines)


def test_columns_are_dropped_before_texts_are_cut() -> None:
    """Columns go in their order, the last line names them, and only then texts are cut."""
    rows = [["abcdefgh", "someone", "17", "a long reason why", "x"]]
    shown = {width: draw(COLUMNS, rows, width) for width in (60, 46, 36, 28, 20, 18)}
    assert shown[60].lines == [
        "id        who      size  more  reason",
        "abcdefgh  someone    17  x     a long reason why",
    ]
    assert shown[46].rows == ["abcdefgh  someo…    17  x     a long reason w…"]
    assert shown[36].rows == ["abcdefgh  someo…    17  a long reas…"]
    assert shown[36].rest == ["not shown: more; --wide shows all"]
    assert shown[28].rows == ["abcdefgh  someo…  a long re…"]
    assert shown[20].rows == ["abcdefgh  a long re…"]
    assert " ".join(shown[20].rest) == "not shown: who, size, more; --wide shows all"
    assert shown[18].rows == ["abcdefgh  a long…"]


REASON = "first in line; limit: 50 of 50 units are held by job 4711 on runner-7"
LABELLED = (*COLUMNS, Column("image", dropped=EXTRA))
CROWDED = [["abcdefgh", "job 17 on runner-3 (ci)", "17", REASON, "x", "rhel-9.4"]]


def test_the_reason_is_cut_last() -> None:
    """Others give way until it has room for what matters; only then they get more than it."""
    shown = {width: draw(LABELLED, CROWDED, width) for width in (132, 100, 88, 70, 60)}
    assert shown[132].rows[0].endswith(REASON)
    assert "job 17 on runner-3 (ci)" in shown[100].rows[0]
    assert "job 17 on run…" in shown[88].rows[0]
    assert shown[70].rows[0].startswith("abcdefgh  job 1…")
    for width in (100, 88, 70):
        _, reason = shown[width].rows[0].split("first")
        assert len(f"first{reason}") >= ROOM - 1, width
    assert len(shown[60].rows[0].partition("first")[2]) < ROOM - len("first")


def test_columns_of_labels_leave_room_for_the_reason() -> None:
    """They are dropped while the reason has less than it needs; another column is not (control)."""
    width = len("abcdefgh  job 1…    17  x     rhel-9.4  ") + ROOM
    assert "rhel-9.4" in draw(LABELLED, CROWDED, width).rows[0]
    narrower = draw(LABELLED, CROWDED, width - 1)
    assert "rhel-9.4" not in narrower.rows[0]
    assert narrower.rest == ["not shown: image; --wide shows all"]
    control = (*COLUMNS, Column("image", dropped=EXTRA - 1))
    assert "rhel-9.4" in draw(control, CROWDED, width - 1).rows[0]


def test_empty_columns_are_not_shown() -> None:
    """A column without values goes, and is not named: nothing is missing. `--wide` shows it."""
    rows = [["abcdefgh", "-", "17", "because", "x"]]
    titles = ["id        size  more  reason", "abcdefgh    17  x     because"]
    assert draw(COLUMNS, rows, 29).lines == draw(COLUMNS, rows, 120).lines == titles
    assert draw(COLUMNS, rows, None).lines[0] == "id        who  size  more  reason"
    assert draw(COLUMNS, [], 120).lines == ["id  who  size  more  reason"]


def test_control_characters_and_wide_characters() -> None:
    """Texts of others cannot leave their cell: escapes are shown, wide characters are counted."""
    rows = [["a\x1b[2Jb", "-", "1", "日本語日本語", "-"], [Cell("c\n", "full"), "-", "1", "-", "-"]]
    drawn = draw(COLUMNS, rows, 28)
    assert drawn.rows == [r"a\x1b[2Jb     1  日本語日本…", r"c\n           1  -"]


def test_short_ids() -> None:
    """Each is unique among those shown; one that begins with a time shows at least that."""
    time = "01957b9e-b0e3-7929-9dbb-8ab3a75f0605"
    same = "01957b9e-b0e3-7929-9dbb-8ab3a75fffff"
    other = "5d4c1b1e-7f0a-4a63-9f0e-2f7c6b1d8a55"
    near = "5d4c1b1e-800a-4a63-9f0e-2f7c6b1d8a55"
    assert [one.short for one in id_cells([time, other]).values()] == ["01957b9e-b0e3", "5d4c1b1e"]
    shown = id_cells([time, same, other, near])
    assert shown[same].short == "01957b9e-b0e3-7929-9dbb-8ab3a75ff"
    assert (shown[other].short, shown[near].short) == ("5d4c1b1e-7", "5d4c1b1e-8")
    assert all(cell.full == one for one, cell in shown.items())


@given(st.sets(st.uuids(), max_size=20))
def test_a_short_id_begins_only_one(ids: set[object]) -> None:
    """No short id is the beginning of another id that is shown."""
    texts = [*map(str, ids)]
    for one, cell in id_cells(texts).items():
        assert [text for text in texts if text.startswith(cell.short)] == [one]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "0s"),
        (0.9, "0s"),
        (59.9, "59s"),
        (192, "3m12s"),
        (3_599, "59m59s"),
        (7_559, "2h05m"),
        (86_399, "23h59m"),
        (86_400, "1d"),
        (273_600, "3d04h"),
    ],
)
def test_ages(seconds: float, text: str) -> None:
    """An age has at most two units, and never more than has passed."""
    assert age_text(seconds) == text


def test_ends() -> None:
    """An end to come is `in`, a past one `ago`; in a pipe it is a time."""
    now = datetime(2026, 3, 14, tzinfo=UTC)
    assert end_cell(now + timedelta(seconds=47), now).short == "in 47s"
    assert end_cell(now - timedelta(hours=2), now)[:2] == ("2h ago", "2026-03-13T22:00:00+00:00")
    assert end_cell(None, now).full == "-"
