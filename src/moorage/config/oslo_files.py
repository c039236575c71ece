"""Files in the format of oslo.config: sections, assignments, continued lines and references.

Source: `oslo_config/iniparser.py` and the substitution in `oslo_config/cfg.py`.
"""

import os
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from moorage.config import ConfigError

DEFAULT_GROUP = "DEFAULT"

TRUE = frozenset({"true", "1", "on", "yes"})
FALSE = frozenset({"false", "0", "off", "no"})

_REFERENCE = re.compile(r"\\\$|\$(?:(\$)|([_a-z][._a-z0-9]*)|\{([_a-z][._a-z0-9]*)\})", re.I)
DEPTH_MAX = 10
"""How far a reference may lead; a value that refers to itself leads farther."""


class Assigned(NamedTuple):
    """A value as it is in a file."""

    text: str
    path: str


class OsloFiles:
    """The values of several files; of those that a key has, the last one counts."""

    def __init__(self, paths: Sequence[str]) -> None:
        """Read the files, and those that end with `.conf` in folders, by name.

        Raises:
            ConfigError: a file cannot be read, or has a line that is none of the format.
        """
        self._assigned: dict[tuple[str, str], Assigned] = {}
        self.paths = [file for path in paths for file in _files_of(path)]
        for path in self.paths:
            for group, key, text in _assignments(path):
                self._assigned[group, key] = Assigned(text, path)

    def assigned(self) -> list[tuple[str, str]]:
        """Return the group and the name of every key, in the order of the files."""
        return list(self._assigned)

    def path(self, group: str, key: str) -> str:
        """Return the file that has the value. Raises KeyError: none has."""
        return self._assigned[group, key].path

    def text(self, group: str, key: str) -> str | None:
        """Return a value with its references replaced; None: no file has it.

        Raises:
            ConfigError: it refers to a key that no file has.
        """
        return self._text(group, key, DEPTH_MAX)

    def _text(self, group: str, key: str, depth: int) -> str | None:
        found = self._assigned.get((group, key))
        if found is None:
            return None

        def replaced(match: re.Match[str]) -> str:
            _, plain, braced = match.groups()
            name = plain or braced
            if not name:
                return "$"  # it was written twice, or after a backslash
            value = self._referred(group, name, depth - 1) if depth else None
            if value is None:
                raise ConfigError(
                    f"{found.path} [{group}] {key}: refers to ${name}, which is not in the file;"
                    " write $$ for a dollar sign"
                )
            return value

        return _REFERENCE.sub(replaced, found.text)

    def _referred(self, group: str, name: str, depth: int) -> str | None:
        other, _, key = name.rpartition(".")
        if other:
            return self._text(other, key, depth)
        here = self._text(group, name, depth)
        return self._text(DEFAULT_GROUP, name, depth) if here is None else here

    def truth(self, group: str, key: str) -> bool | None:
        """Return whether a value means true; None: no file has it. Raises ConfigError: neither."""
        text = self.text(group, key)
        if text is None:
            return None
        if text.lower() in TRUE:
            return True
        if text.lower() in FALSE:
            return False
        raise ConfigError(f"{self.path(group, key)} [{group}] {key}: must be true or false")

    def number(self, group: str, key: str) -> int | None:
        """Return a whole number; None: no file has it. Raises ConfigError: it is none."""
        text = self.text(group, key)
        try:
            return None if text is None else int(text)
        except ValueError:
            raise ConfigError(
                f"{self.path(group, key)} [{group}] {key}: must be a whole number"
            ) from None

    def list(self, group: str, key: str) -> list[str] | None:
        """Return the parts between commas; None: no file has it."""
        text = self.text(group, key)
        if text is None:
            return None
        return [part.strip() for part in text.split(",") if part.strip()]


def _files_of(path: str) -> list[str]:
    if not os.path.isdir(path):
        return [path]
    return [os.path.join(path, name) for name in sorted(os.listdir(path)) if name.endswith(".conf")]


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8") as stream:
            return stream.read().split("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise ConfigError(f"file {path}: cannot be read: {reason}") from None


def _assignments(path: str) -> Iterator[tuple[str, str, str]]:
    """Yield the group, the key and the value of each assignment. Raises ConfigError.

    An error names the line, but not its text, which may have a password.
    """
    group, key = "", ""
    value: list[str] = []
    for number, whole in enumerate([*_lines(path), ""], 1):
        line = whole.rstrip()
        if line.startswith((" ", "\t")):
            if not key:
                raise ConfigError(f"{path}, line {number}: continues no assignment")
            value.append(line.lstrip())
            continue
        if key:
            yield group, key, "\n".join(value)
            key = ""
        if not line or line.startswith(("#", ";")):
            continue
        if line.startswith("["):
            if not line.endswith("]") or len(line) == 2:
                raise ConfigError(f"{path}, line {number}: a section is [NAME]")
            group = line[1:-1] if line[1:-1].upper() == DEFAULT_GROUP else line[1:-1].lower()
            continue
        if not group:
            raise ConfigError(f"{path}, line {number}: is in no section")
        key, value = _split(line, f"{path}, line {number}")


def _split(line: str, place: str) -> tuple[str, list[str]]:
    """Return the key and the value of a line with an assignment. Raises ConfigError."""
    match = re.match(r"([^:=]*)[:=](.*)", line)
    if match is None or not match[1].strip():
        raise ConfigError(f"{place}: an assignment is KEY = VALUE")
    value = match[2].strip()
    if value and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    return match[1].strip(), [value]
