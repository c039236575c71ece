"""The administrator's token is not created where it cannot be stored."""

from pathlib import Path

import pytest

from tests.e2e.support.server import NotStarted, serve
from tests.support import cluster


def test_a_token_that_cannot_be_stored_is_not_created(tmp_path: Path) -> None:
    """The start fails and says where; so the next one, which can store it, creates it."""
    database = cluster.fresh()
    (tmp_path / "file").touch()
    with pytest.raises(NotStarted) as failed:
        serve(database, XDG_STATE_HOME=str(tmp_path / "file"))
    said = str(failed.value).splitlines()[-1]
    assert said.startswith(f"moorage: cannot write the administrator's token to {tmp_path}/file/")
    assert "Not a directory; set XDG_STATE_HOME to a folder" in said
    with serve(database, XDG_STATE_HOME=str(tmp_path / "folder")):
        (token,) = (tmp_path / "folder").rglob("*.token")
        assert token.read_text().startswith("moorage_")
