"""Parses Boskos' configuration file into a SlotConfig, with Boskos' error messages.

Source: Boskos' `ValidateConfig`. Keys are case-insensitive, unknown ones are ignored.
"""

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from moorage.core import durations
from moorage.core.admission.model import FREE, Growth
from moorage.core.admission.slot_config import ResourceType, SlotConfig

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
SUBDOMAIN_LENGTH_MAX = 253

_FAULTY = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.',"
    " and must start and end with an alphanumeric character (e.g. 'example.com', regex used for"
    rf" validation is '{_SUBDOMAIN}')"
)
_TOO_LONG = f"must be no more than {SUBDOMAIN_LENGTH_MAX} characters"


class ConfigFileError(Exception):
    """The configuration is invalid or unreadable; the message is the reason."""


class _Entry(Struct, frozen=True):
    """One entry of the file."""

    type: str
    state: str
    names: list[str]
    least: int
    most: int
    lifespan: int | None
    needs: dict[str, int]

    @property
    def dynamic(self) -> bool:
        return not self.names


def slot_config_parse(text: str | bytes) -> SlotConfig:
    """Parse and check a configuration. Raises ConfigFileError."""
    import yaml  # deferred: only needed with such a file

    # This loader returns every scalar as a string, and a file cannot create arbitrary objects.
    loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        root = yaml.load(text, Loader=loader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigFileError(f"it is not YAML: {' '.join(str(error).split())}") from None
    resources = _lower(root).get("resources") or []
    if not isinstance(resources, list):
        raise ConfigFileError("resources: must be a list")
    entries = [_entry(index, _lower(one)) for index, one in enumerate(resources)]
    problems = list(dict.fromkeys(_problems(entries)))
    if problems:
        raise ConfigFileError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    return SlotConfig(tuple(map(_core, entries)))


def _core(entry: _Entry) -> ResourceType:
    growth = None
    if entry.dynamic:
        growth = Growth(
            least=entry.least,
            most=entry.most,
            state=entry.state or FREE,
            lifespan=None if entry.lifespan is None else entry.lifespan // 1_000,
        )
    return ResourceType(entry.type, entry.state or FREE, tuple(entry.names), growth)


def _lower(value: Any) -> dict[str, Any]:
    """Return a mapping with its keys in lower case; empty for any other value."""
    return {str(key).lower(): one for key, one in value.items()} if isinstance(value, dict) else {}


def _entry(index: int, one: dict[str, Any]) -> _Entry:
    names = one.get("names") or []
    if not isinstance(names, list):
        raise ConfigFileError(f".{index}.names: must be a list")
    needs = one.get("needs")
    return _Entry(
        type=_text(one.get("type")),
        state=_text(one.get("state")),
        names=[_text(name) for name in names],
        least=_number(index, "min-count", one.get("min-count")),
        most=_number(index, "max-count", one.get("max-count")),
        lifespan=_lifespan(index, one.get("lifespan")),
        needs={
            str(key): _number(index, f"needs.{key}", count)
            for key, count in (needs.items() if isinstance(needs, dict) else ())
        },
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) and value not in ("null", "~") else ""


def _number(index: int, name: str, value: Any) -> int:
    text = _text(value)
    if not text:
        return 0
    if re.fullmatch(r"[-+]?[0-9]{1,9}", text) is None:
        raise ConfigFileError(f".{index}.{name}: must be a whole number")
    return int(text)


def _lifespan(index: int, value: Any) -> int | None:
    """Return nanoseconds, which are also the unit of a plain number."""
    text = _text(value)
    if not text:
        return None
    if re.fullmatch(r"[-+]?[0-9]{1,18}", text):
        return int(text)
    try:
        return durations.parse(text)
    except durations.DurationError as error:
        raise ConfigFileError(f".{index}.lifespan: {error}") from None


def _problems(entries: list[_Entry]) -> Iterator[str]:
    if not entries:
        yield "empty config"
        return
    types: set[str] = set()
    names: set[str] = set()
    for index, entry in enumerate(entries):
        if not entry.type:
            yield f".{index}.type: must be set"
        if entry.type in types:
            yield f".{index}.type.{entry.type} already exists"
        types.add(entry.type)
        yield from _of_counts(index, entry)
        yield from _of_names(index, entry, names)
    yield from _of_needs(entries)


def _of_counts(index: int, entry: _Entry) -> Iterator[str]:
    if entry.dynamic:
        if entry.most == 0:
            yield f".{index}.max-count: must be >0"
        if entry.least > entry.most:
            yield f".{index}.min-count: must be <= .{index}.max-count"
    else:
        if entry.least != 0:
            yield f".{index}.min-count must be unset when the names property is set"
        if entry.most != 0:
            yield f".{index}.max-count must be unset when the names property is set"


def _of_names(index: int, entry: _Entry, names: set[str]) -> Iterator[str]:
    """Check the names of one entry, and add them to `names`, those of earlier entries."""
    for at, name in enumerate(entry.names):
        faults = []
        if len(name) > SUBDOMAIN_LENGTH_MAX:
            faults.append(_TOO_LONG)
        if re.fullmatch(_SUBDOMAIN, name) is None:
            faults.append(_FAULTY)
        if faults:
            yield f".{index}.names.{at}({name}) is invalid: [{' '.join(faults)}]"
        if name in names:
            yield f".{index}.names.{at}({name}) is a duplicate"
        names.add(name)


def _of_needs(entries: list[_Entry]) -> Iterator[str]:
    """Check that the resources that dynamic types need exist, in the maximum number."""
    there: dict[str, int] = {}
    wanted: dict[str, int] = {}
    for entry in entries:
        count = entry.most if entry.dynamic else len(entry.names)
        there[entry.type] = there.get(entry.type, 0) + count
        for kind, units in entry.needs.items() if entry.dynamic else ():
            wanted[kind] = wanted.get(kind, 0) + units * entry.most
    for kind, units in wanted.items():
        if kind not in there:
            yield f"need for resource {kind} that does not exist"
        if units > there.get(kind, 0):
            yield f"not enough resource of type {kind} for provisioning"
