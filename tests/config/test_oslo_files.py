"""The format of oslo.config; `tests/openstack` compares with oslo.config itself."""

from pathlib import Path

import pytest

from moorage.config import ConfigError
from moorage.config.oslo_files import OsloFiles

TEXT = """
[DEFAULT]
outside = 1
[a]
plain=x
colon : y = z
quoted = "  two words "
continued = first
    second
; comment = no
# comment = no
price = 5$$ or 5\\$
name = $plain-${a.colon}-$outside
[A]
upper = the group is the same
plain = the last one counts
empty =
list = a, b,,c ,
"""


def read(folder: Path, text: str) -> OsloFiles:
    """Return the values of one file."""
    file = folder / "one.conf"
    file.write_text(text)
    return OsloFiles([str(file)])


def test_values(tmp_path: Path) -> None:
    """Assignments, quotes, continued lines, references and repeated sections."""
    files = read(tmp_path, TEXT)
    assert {key: files.text(*key) for key in files.assigned()} == {
        ("DEFAULT", "outside"): "1",
        ("a", "plain"): "the last one counts",
        ("a", "colon"): "y = z",
        ("a", "quoted"): "  two words ",
        ("a", "continued"): "first\nsecond",
        ("a", "price"): "5$ or 5$",
        ("a", "name"): "the last one counts-y = z-1",
        ("a", "upper"): "the group is the same",
        ("a", "empty"): "",
        ("a", "list"): "a, b,,c ,",
    }
    assert files.list("a", "list") == ["a", "b", "c"]
    assert files.text("a", "missing") is None


def test_later_files_count_more(tmp_path: Path) -> None:
    """A folder stands for its files that end with .conf, by name."""
    (tmp_path / "2.conf").write_text("[a]\nx = 2\n")
    (tmp_path / "1.conf").write_text("[a]\nx = 1\ny = 1\n")
    (tmp_path / "3.txt").write_text("[a]\nx = 3\n")
    files = OsloFiles([str(tmp_path)])
    assert (files.text("a", "x"), files.text("a", "y")) == ("2", "1")
    assert files.path("a", "x") == str(tmp_path / "2.conf")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[a\n", "line 1"),
        ("[]\n", "line 1"),
        ("x = hunter2\n", "line 1"),
        ("\n  continued\n", "line 2"),
        ("[a]\nhunter2\n", "line 2"),
        ("[a]\n= hunter2\n", "line 2"),
        ("[a]\nx = $missing hunter2\n", "$missing"),
        ("[a]\nx = $x hunter2\n", "$x"),
    ],
)
def test_errors_name_the_place_and_no_value(tmp_path: Path, text: str, words: str) -> None:
    """A line may have a password."""
    with pytest.raises(ConfigError) as raised:
        read(tmp_path, text).text("a", "x")
    assert words in str(raised.value)
    assert "hunter2" not in str(raised.value)


def test_kinds_of_values(tmp_path: Path) -> None:
    """Truth and numbers are written as in oslo.config; anything else is an error."""
    files = read(tmp_path, "[a]\nyes = On\nno = 0\nnumber = -1\nword = hunter2\n")
    assert (files.truth("a", "yes"), files.truth("a", "no")) == (True, False)
    assert files.truth("a", "missing") is files.number("a", "missing") is None
    assert files.number("a", "number") == -1
    for wrong in (files.truth, files.number):
        with pytest.raises(ConfigError, match=r"\[a\] word"):
            wrong("a", "word")
