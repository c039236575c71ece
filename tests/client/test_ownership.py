"""Files that are found are trusted only if no other user than root can have written them."""

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from moorage.ownership import UntrustedError, read_own, read_secret

REMEDY = "name it instead"
STRANGER = 65_533
"""An unused user id."""


def read(path: Path, owner: int | None = None) -> bytes:
    """Read a file that was found."""
    return read_own(str(path), REMEDY, owner)


def objection(path: Path) -> str:
    """Return why a file is not trusted."""
    with pytest.raises(UntrustedError) as refused:
        read(path)
    said = str(refused.value)
    assert said.startswith(f"{path} is not used: ")
    assert said.endswith("this file decides where tokens are sent; name it instead")
    assert "\n" not in said
    return said


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a file of this user in a folder of this user."""
    tmp_path.chmod(0o755)
    path = tmp_path / "found.toml"
    path.write_text("x")
    path.chmod(0o644)
    return path


def test_an_own_file_is_trusted(file: Path) -> None:
    """It is trusted even if others can read it, and also by a relative name."""
    assert read(file) == b"x"
    before = Path.cwd()
    os.chdir(file.parent)
    try:
        assert read_own(file.name, REMEDY) == b"x"
    finally:
        os.chdir(before)


def test_a_file_that_others_can_write_is_refused(file: Path) -> None:
    """Others must not write to the file, nor to its folder, where they could replace it."""
    file.chmod(0o646)
    assert f"everybody can write to {file}" in objection(file)
    file.chmod(0o644)
    for mode in (0o757, 0o1777):
        file.parent.chmod(mode)
        assert f"everybody can write to {file.parent}" in objection(file)
    file.parent.chmod(0o755)
    assert read(file) == b"x"


def test_what_is_not_there_needs_no_trust(tmp_path: Path) -> None:
    """In a folder that all users can write, a missing file is simply missing."""
    tmp_path.chmod(0o777)
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "nothing")


def test_a_pipe_holds_nobody_up(tmp_path: Path) -> None:
    """Only regular files are read."""
    tmp_path.chmod(0o755)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o600)
    assert "not a regular file" in objection(pipe)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_it_must_belong_to_us_or_root(file: Path) -> None:
    """Neither the file nor its folder may belong to another user, unless that one is expected."""
    os.chown(file, STRANGER, -1)
    assert f"{file} belongs to the user {STRANGER}" in objection(file)
    assert read(file, STRANGER) == b"x"
    os.chown(file, 0, -1)
    os.chown(file.parent, STRANGER, -1)
    assert f"{file.parent} belongs to the user {STRANGER}" in objection(file)
    assert read(file, STRANGER) == b"x"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_only_the_own_group_may_write(file: Path) -> None:
    """A file that the user's own group can write to is common (umask 002)."""
    file.chmod(0o664)
    assert read(file) == b"x"
    os.chown(file, -1, STRANGER)
    assert "others of its group can write" in objection(file)
    file.chmod(0o644)
    assert read(file) == b"x"


def test_secrets_must_be_readable_by_their_owner_only(file: Path) -> None:
    """A file with a token that others can read is refused, with the command to fix it."""
    file.chmod(0o600)
    assert read_secret(str(file)) == b"x"
    for mode in (0o640, 0o604, 0o620, 0o644):
        file.chmod(mode)
        with pytest.raises(UntrustedError, match=f"has the mode {mode:04o}.*chmod 600"):
            read_secret(str(file))
    file.chmod(stat.S_IRUSR)
    assert read_secret(str(file), os.geteuid()) == b"x"
    with pytest.raises(UntrustedError, match="belongs to"):
        read_secret(str(file), STRANGER)


def test_a_secret_is_a_file(file: Path) -> None:
    """A pipe in its place does not block a command, even if any user may write to it."""
    pipe = file.with_name("pipe")
    os.mkfifo(pipe, 0o600)
    with pytest.raises(UntrustedError, match="is not a regular file"):
        read_secret(str(pipe))


def test_the_checked_file_is_the_one_that_is_read(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user that can write the folder cannot make a reader read another file."""
    file.chmod(0o600)
    other = file.with_name("other")
    other.write_text("of somebody else")
    other.chmod(0o644)

    def swapped(look: Callable[..., os.stat_result]) -> Callable[..., os.stat_result]:
        def looked(*args: Any, **options: Any) -> os.stat_result:
            found = look(*args, **options)
            with suppress(FileNotFoundError):  # once
                os.rename(other, file)
            return found

        return looked

    monkeypatch.setattr(os, "fstat", swapped(os.fstat))
    monkeypatch.setattr(os, "stat", swapped(os.stat))
    assert read_secret(str(file)) == b"x"
