"""The migrations of both engines: numbered files, forward only.

A released migration never changes; its checksum is stored in the database.
"""

from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files

from moorage.store.api import Unusable


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered step of the schema."""

    number: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        """SHA-256 of the text, hexadecimal."""
        return sha256(self.text.encode()).hexdigest()


def migrations(engine: str) -> list[Migration]:
    """Return the migrations of an engine (`sqlite`, `postgres`) in order."""
    found = []
    for file in files(__package__).joinpath("schema", engine).iterdir():
        number, name = file.name.removesuffix(".sql").split("_", 1)
        found.append(Migration(int(number), name, file.read_text(encoding="utf-8")))
    return sorted(found, key=lambda migration: migration.number)


def missing(
    known: list[Migration], applied: dict[int, tuple[str, str]], path: str
) -> list[Migration]:
    """Return the known migrations that were not yet applied to the database at `path`.

    Args:
        known: the migrations of this release.
        applied: (name, checksum) of the applied ones, by number.
        path: of the database, for messages.

    Raises:
        Unusable: the database was written by a newer release or by a build before the first
            release, or a migration was altered.
    """
    for number, (name, checksum) in sorted(applied.items()):
        migration = next((one for one in known if one.number == number), None)
        if migration is None:
            raise Unusable(
                f"{path} has migration {number} ({name}), which this release does not know; "
                "use the newer release that wrote it"
            )
        if migration.name != name:
            raise Unusable(
                f"{path} was made by a build before the first release, which no release can read; "
                "name a new database, or use the build that made it"
            )
        if migration.checksum != checksum:
            raise Unusable(
                f"{path} was made with another text of migration {number} ({name}); "
                "use the release that wrote it or restore a backup"
            )
    return [one for one in known if one.number not in applied]
