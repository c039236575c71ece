"""`moorage db backup --folder`: which files it deletes, and which it never touches."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from moorage.cli.support.backup_folder import NAME, backup_name, thinned
from moorage.store.api import Unusable
from moorage.store.sqlite.copy import copy
from moorage.store.unfinished import Unfinished
from tests.cli.command import answer, moorage, refusal
from tests.e2e.support.server import serve
from tests.store.killed_backup import left_by_a_killed_process


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Return the folder of a server's database."""
    place = tmp_path / "served"
    place.mkdir()
    (place / "moorage.toml").write_text(f'database = "sqlite:///{place}/moorage.sqlite"\n')
    with serve(place / "moorage.sqlite"):
        yield place


def made(place: Path, *names: str) -> None:
    """Create empty files."""
    for name in names:
        (place / name).touch()


def names_in(place: Path) -> list[str]:
    """Return the names of the files of a folder."""
    return sorted(path.name for path in place.iterdir())


def day(number: int) -> str:
    """Return the name of the backup of a day."""
    return backup_name(datetime(2026, 1, number, 2, 30, tzinfo=UTC))


def test_names_sort_like_times() -> None:
    """Over the end of a year, too."""
    times = [datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)]
    assert [backup_name(at) for at in times] == sorted(backup_name(at) for at in times)
    assert NAME.fullmatch(backup_name(times[0]))


def test_the_newest_are_kept(tmp_path: Path) -> None:
    """Files with other names are not backups of this command; what was left unfinished goes."""
    others = ["moorage-monday.sqlite", "notes", f"{day(1)}.old", "moorage-1.sqlite.partial"]
    made(tmp_path, *(day(number) for number in (1, 2, 3, 9, 10)), *others)
    made(tmp_path, f"{day(3)}.partial")
    for number in (4, 11):
        left_by_a_killed_process(tmp_path / day(number))
    found = thinned(str(tmp_path), 2, day(10), day(10))
    assert sorted(Path(path).name for path in found.deleted) == [
        *(day(number) for number in (1, 2, 3)),
        f"{day(3)}.partial",
        f"{day(4)}.partial",
    ]
    assert names_in(tmp_path) == sorted([day(9), day(10), f"{day(11)}.partial", *others])
    assert thinned(str(tmp_path), 100, day(10), day(10)) == ([], [])


def test_one_that_is_made_meanwhile(tmp_path: Path) -> None:
    """It counts, but the backup that was just made stays in any case."""
    made(tmp_path, *(day(number) for number in (1, 2, 3)))
    found = thinned(str(tmp_path), 1, day(2), day(3))
    assert (found.deleted, found.problems) == ([str(tmp_path / day(1))], [])
    assert names_in(tmp_path) == [day(2), day(3)]


def test_two_that_delete_at_once(tmp_path: Path) -> None:
    """A backup by a timer and one by hand: neither fails because the other was faster."""
    days = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number) for number in range(300)]
    names = [backup_name(day) for day in days]
    for _ in range(5):
        made(tmp_path, *names)
        for name in names[:-1:10]:
            (tmp_path / f"{name}.partial").mkdir()
        with ThreadPoolExecutor(4) as pool:
            work = [pool.submit(thinned, str(tmp_path), 1, names[-1], names[-1]) for _ in range(4)]
        assert [one.result().problems for one in work] == [[]] * 4
        assert names_in(tmp_path) == names[-1:]


def test_one_that_cannot_be_deleted(tmp_path: Path) -> None:
    """The others are, and the line says which one; what is no file is no backup."""
    made(tmp_path, *(day(number) for number in (2, 4, 5)))
    (tmp_path / day(1)).mkdir()
    (tmp_path / day(3)).symlink_to(tmp_path / "nowhere")
    left = tmp_path / f"{day(1)}.partial"
    left.mkdir()
    (left / "precious").touch()
    found = thinned(str(tmp_path), 1, day(5), day(5))
    assert found.deleted == [str(tmp_path / day(2)), str(tmp_path / day(4))]
    assert found.problems == [f"cannot delete {left}: Directory not empty"]
    assert names_in(tmp_path) == [day(1), left.name, day(3), day(5)]
    assert (left / "precious").exists()


def test_a_linked_folder_is_not_followed(tmp_path: Path) -> None:
    """Anyone who can write to the folder cannot make root delete files elsewhere."""
    database = tmp_path / "elsewhere" / "moorage.sqlite"
    database.parent.mkdir()
    database.touch()
    place = tmp_path / "backups"
    place.mkdir()
    (place / f"{day(1)}.partial").symlink_to(database.parent)
    thinned(str(place), 1, day(2), day(2))
    assert database.exists()


def test_the_command(folder: Path, tmp_path: Path) -> None:
    """It says what it has written and deleted."""
    place = tmp_path / "backups"
    place.mkdir()
    made(place, day(1), day(2))
    words = ("db", "backup", "--folder", str(place), "--keep", "2")
    found = answer(*words, directory=folder)
    assert found["deleted"] == [str(place / day(1))]
    assert Path(found["path"]).parent == place
    assert len(names_in(place)) == 2


def test_backups_of_another_database_stay(folder: Path, tmp_path: Path) -> None:
    """They do not count either. This also keeps the backups of a database that was lost, after the
    server has begun with an empty one.
    """
    place = tmp_path / "backups"
    place.mkdir()
    with serve(tmp_path / "other.sqlite"):
        pass
    other = str(tmp_path / "other.sqlite")
    for number in (1, 2):
        copy(other, str(place / day(number)))
    copy(str(folder / "moorage.sqlite"), str(place / day(3)))
    words = ("db", "backup", "--folder", str(place), "--keep", "1")
    done = moorage(*words, directory=folder)
    assert done.returncode == 1
    assert f"{place / day(1)} is of another database" in done.stderr
    assert f"deleted {place / day(3)}" in done.stdout
    assert names_in(place)[:2] == [day(1), day(2)]
    assert len(names_in(place)) == 3


def test_a_backup_from_the_future(folder: Path, tmp_path: Path) -> None:
    """It neither replaces the backup that was just made nor goes unnoticed."""
    place = tmp_path / "backups"
    place.mkdir()
    future = "moorage-99991231T235959Z.sqlite"
    made(place, day(1), day(2), future)
    words = ("db", "backup", "--folder", str(place), "--keep", "1")
    done = moorage(*words, directory=folder)
    newest, last = names_in(place)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        f"wrote {place / newest}",
        f"deleted {place / day(1)}",
        f"deleted {place / day(2)}",
    ]
    assert "the backup is complete, but" in done.stderr
    assert f"{place / future} is from the future: check the clock" in done.stderr
    assert last == future
    assert (place / newest).stat().st_size > 0


def test_a_failed_backup_deletes_nothing(folder: Path, tmp_path: Path) -> None:
    """The old ones may be all that there is."""
    place = tmp_path / "backups"
    place.mkdir()
    made(place, day(1), day(2))
    words = ["db", "backup", "--folder", str(place), "--keep", "1"]
    words += ["--database", f"sqlite:///{tmp_path}/nowhere.sqlite"]
    assert "no database" in refusal(2, *words, directory=folder)
    assert names_in(place) == [day(1), day(2)]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "give either FILE or --folder"),
        (["x.sqlite", "--folder", "."], "give either FILE or --folder"),
        (["x.sqlite", "--keep", "3"], "--keep needs --folder"),
        (["--folder", "nowhere"], "nowhere is no folder"),
    ],
)
def test_wrong_words(folder: Path, words: list[str], why: str) -> None:
    """Each is refused before anything is copied."""
    assert why in refusal(2, "db", "backup", *words, directory=folder)


def test_what_is_being_written_stays(tmp_path: Path) -> None:
    """A backup that takes long is not left over, although a later one is complete already."""
    made(tmp_path, day(3))
    with closing(Unfinished(str(tmp_path / day(2)))) as slow:
        Path(slow.path).write_bytes(b"written")
        assert thinned(str(tmp_path), 1, day(3), day(3)) == ([], [])
        with pytest.raises(Unusable, match="is being written by another backup"):
            Unfinished(str(tmp_path / day(2)))
        slow.publish()
    assert names_in(tmp_path) == [day(2), day(3)]
