"""Reads a Containerfile and a file of ignored paths: as much of both as ours use.

Anything else raises `Unsupported`: what is not understood must not pass for built.
"""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

KNOWN = frozenset(
    {
        *("ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE"),
        *("FROM", "HEALTHCHECK", "LABEL", "RUN", "USER", "WORKDIR"),
    }
)
VARIABLE = re.compile(r"\$(?:(?P<plain>\w+)|\{(?P<braced>\w+)\})")


class Unsupported(Exception):
    """The file has something that is not understood; the message names the line."""


@dataclass(frozen=True)
class Instruction:
    """One instruction: its first line, its name and the rest, in which lines are joined."""

    line: int
    name: str
    rest: str

    def fail(self, why: str) -> Unsupported:
        """Return the error that names this line."""
        return Unsupported(f"line {self.line}: {self.name}: {why}")


@dataclass(frozen=True)
class Stage:
    """What one FROM begins. `source` is not expanded."""

    name: str
    source: str
    instructions: tuple[Instruction, ...]


def instructions(text: str) -> list[Instruction]:
    """Divide a file into instructions. Raises Unsupported."""
    found: list[Instruction] = []
    first, joined = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"#\s*(syntax|escape|check)\s*=", line):
            raise Unsupported(f"line {number}: a parser directive")
        if line.lstrip().startswith("#") or not (line.strip() or joined):
            continue
        first = first or number
        joined += line.strip() if not joined else f" {line.strip()}"
        if joined.endswith("\\"):
            joined = joined[:-1].rstrip()
            continue
        name, _, rest = joined.partition(" ")
        if name not in KNOWN:
            raise Unsupported(f"line {first}: {name} is not known")
        if "<<" in rest:
            raise Unsupported(f"line {first}: {name}: a here-document")
        found.append(Instruction(first, name, rest.strip()))
        first, joined = 0, ""
    if joined:
        raise Unsupported(f"line {first}: the file ends within an instruction")
    return found


def stages(text: str) -> tuple[dict[str, str], list[Stage]]:
    """Return the arguments before the first stage with their defaults, and all stages."""
    arguments: dict[str, str] = {}
    found: list[Stage] = []
    for one in instructions(text):
        if one.name == "FROM":
            words = one.rest.split()
            if len(words) != 3 or words[1] != "AS":
                raise one.fail("is not of the form FROM IMAGE AS NAME")
            found.append(Stage(words[2], words[0], ()))
        elif found:
            last = found[-1]
            found[-1] = Stage(last.name, last.source, (*last.instructions, one))
        elif one.name == "ARG":
            name, _, default = one.rest.partition("=")
            arguments[name] = default
        else:
            raise one.fail("is before the first FROM")
    return arguments, found


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """Replace `$NAME` and `${NAME}`; an unknown name is empty, as for an engine."""
    if re.search(r"\\\$|\$\{\w+[^\w}]", text):
        raise Unsupported(f"a form of expansion: {text}")
    return VARIABLE.sub(lambda hit: variables.get(hit["plain"] or hit["braced"], ""), text)


def pairs(text: str, variables: Mapping[str, str]) -> dict[str, str]:
    """Return the `NAME=VALUE` of ENV, LABEL or ARG."""
    found = {}
    for word in shlex.split(text):
        name, equals, value = word.partition("=")
        if not equals:
            raise Unsupported(f"{word} is not of the form NAME=VALUE")
        found[name] = expanded(value, variables)
    return found


class Ignored:
    """The patterns of `.containerignore`: what of the context the engine does not get."""

    def __init__(self, text: str) -> None:
        """Read the patterns, one a line. Raises Unsupported: a class of characters."""
        self._rules: list[tuple[bool, re.Pattern[str]]] = []
        self._let_in: list[str] = []
        for line in text.splitlines():
            pattern = line.strip()
            if not pattern or pattern.startswith("#"):
                continue
            if set(pattern) & set("[]\\?"):
                raise Unsupported(f"the pattern {pattern}")
            name = pattern.lstrip("!").strip("/")
            self._rules.append((not pattern.startswith("!"), _compiled(name)))
            if pattern.startswith("!"):
                self._let_in.append(name)

    def __call__(self, path: str) -> bool:
        """Return whether a file is left out: the last pattern that fits it or a parent decides."""
        pure = PurePosixPath(path)
        names = [path, *(str(parent) for parent in pure.parents if parent.name)]
        out = False
        for leaves_out, pattern in self._rules:
            if any(pattern.fullmatch(name) for name in names):
                out = leaves_out
        return out

    def lets_in_below(self, folder: str) -> bool:
        """Return whether an exception names something below a folder.

        Stars count as they are written, as for some engines: such an exception lets in files of
        folders that are let in, but no folder.
        """
        return any(name.startswith(f"{folder}/") for name in self._let_in)


def _compiled(pattern: str) -> re.Pattern[str]:
    parts = re.split(r"(\*\*/|\*\*|\*)", pattern)
    meaning = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*"}
    return re.compile("".join(meaning.get(part, re.escape(part)) for part in parts))


def words_of(instruction: Instruction, rest: str) -> Sequence[str]:
    """Return the words of a command in the form of a JSON list; the other form is refused."""
    try:
        words = json.loads(rest)
    except ValueError:
        raise instruction.fail("is not a list of words") from None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise instruction.fail("is not a list of words")
    return words
