"""A value follows its file; what the file had last counts while it cannot be used."""

import logging
import os
from pathlib import Path

import pytest

from moorage.client.transport import token_of
from moorage.integrations.rereading import FileValue


def token_in(path: Path) -> FileValue[str]:
    """Return the token in a file."""
    return FileValue(str(path), lambda text: token_of(text, str(path)))


def test_changes(tmp_path: Path) -> None:
    """It is read again after it was written or replaced, and only then."""
    path, reads = tmp_path / "token", []
    path.write_text("one\n")

    def parse(text: str) -> str:
        reads.append(text)
        return text.strip()

    value = FileValue(str(path), parse)
    assert [value(), value()] == ["one", "one"]
    path.write_text("another\n")
    assert [value(), value()] == ["another", "another"]
    (tmp_path / "new").write_text("replaced\n")
    os.replace(tmp_path / "new", path)
    assert value() == "replaced"
    assert reads == ["one\n", "another\n", "replaced\n"]


def test_faults(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A file that is empty or gone changes nothing; the log says so once, without its content."""
    path = tmp_path / "token"
    path.write_text("one")
    value = token_in(path)
    for spoil in (lambda: path.write_text("two words"), path.unlink):
        caplog.clear()
        spoil()
        with caplog.at_level(logging.WARNING):
            assert [value(), value()] == ["one", "one"]
        assert len(caplog.records) == 1
        assert "two words" not in caplog.text
    path.write_text("two")
    assert value() == "two"


def test_the_start(tmp_path: Path) -> None:
    """What cannot be used at the start ends it."""
    path = tmp_path / "token"
    with pytest.raises(FileNotFoundError):
        token_in(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="is not a token"):
        token_in(path)
