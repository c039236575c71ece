"""What an audit has surveyed, in a file: an audit that was interrupted goes on from there.

Only suspicions are kept: whatever they are about is looked at again, so an old file cannot lie.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, TextIO

KIND: Final = "moorage audit of nova, 1"
LINE: Final = {"host", "suspects"}


class StateError(Exception):
    """A file cannot be used. The message says why."""


class StateFile:
    """The hosts that are surveyed, and whom they make suspect, one host a line."""

    def __init__(self, path: Path | None, of: str) -> None:
        """Read the file, if there is one; `of` names the cloud and the ledger.

        Raises StateError.
        """
        self._path, self._of = path, of
        self._file: TextIO | None = None
        self.suspects: dict[str, list[str]] = self._read() if path is not None else {}

    def _read(self) -> dict[str, list[str]]:
        assert self._path is not None
        try:
            lines = self._path.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return {}
        except (OSError, UnicodeError) as error:
            raise StateError(f"cannot read {self._path}: {error}") from None
        read = [_object(line) for line in lines]
        if not read:
            return {}
        first, *hosts = read
        if first is None or first.get("kind") != KIND:
            raise StateError(f"{self._path} is not the state of an audit")
        if first.get("of") != self._of:
            raise StateError(f"{self._path} is of an audit of {first.get('of')}")
        # The last line may be cut off: its host is surveyed again.
        return {one["host"]: one["suspects"] for one in hosts if one and one.keys() >= LINE}

    def add(self, host: str, suspects: Iterable[str]) -> None:
        """Keep that a host is surveyed. Raises StateError."""
        found = sorted(suspects)
        self.suspects[host] = found
        if self._path is None:
            return
        try:
            if self._file is None:
                self._file = self._opened(self._path)
            print(json.dumps({"host": host, "suspects": found}), file=self._file, flush=True)
        except OSError as error:
            raise StateError(f"cannot write {self._path}: {error.strerror}") from None

    def _opened(self, path: Path) -> TextIO:
        """Open the file for new lines, after what is whole of it; a kill leaves the old or the new.

        The last of `suspects` is not there yet.
        """
        done = [{"host": host, "suspects": them} for host, them in self.suspects.items()]
        path = path.resolve()
        partial = path.with_name(f".{path.name}.partial")
        file = partial.open("w", encoding="utf-8")
        for line in ({"kind": KIND, "of": self._of}, *done[:-1]):
            print(json.dumps(line), file=file)
        file.flush()
        partial.replace(path)
        return file

    def close(self) -> None:
        """Close the file; it stays for the next audit."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def remove(self) -> None:
        """Remove the file: the audit is complete. Raises StateError."""
        self.close()
        try:
            if self._path is not None:
                self._path.unlink(missing_ok=True)
        except OSError as error:
            raise StateError(f"cannot remove {self._path}: {error.strerror}") from None


def _object(line: str) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
