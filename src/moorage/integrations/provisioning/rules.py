"""Which units a host needs for which work: the rules of an operator, for hosts of any system.

A file (TOML) has one table for each rule; work takes the units of all rules that match it, at once
or not at all:

    [[rule]]
    pool = "deploy/rack-{labels.rack}"       # fields of the host, in braces
    otherwise = "deploy/rack-unknown"        # if the host has no such field; without it: no unit
    verbs = ["provision"]                    # by default all that make a host busy
    units = 1
    where = { namespace = ["metal3", "edge-*"] }

    [[exempt]]                               # counted, but never held back
    where = { "labels.urgent" = "true" }

Which fields and verbs there are is the system's, and so are further settings of a rule.
"""

import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, TypeVar

from msgspec import Meta, Struct, ValidationError, convert

R = TypeVar("R")

FIELD = re.compile(r"\{([a-z_]+(?:\.[A-Za-z0-9_./-]+)?)\}")
"""A field in the name of a pool: `{conductor}`, or below an object: `{properties.rack}`."""

NAME = re.compile(r"[A-Za-z0-9._-]+")
"""Characters of a value in the name of a pool; others are replaced by `-`."""

RULES_MAX = 100

FILE_BYTES_MAX = 1 << 20
"""Bytes of a rules file."""

Fields = Mapping[str, Any]
"""The fields of a host; an object among them has fields of its own."""


class RulesError(ValueError):
    """A rules file is not valid; the message says what to change."""


@dataclass(frozen=True, kw_only=True)
class Condition:
    """Fields of a host, each with the patterns of which one must match; none: every host."""

    patterns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def holds(self, host: Fields) -> bool:
        """Return whether a host meets it."""
        return all(
            any(fnmatchcase(value_of(host, name) or "", one) for one in wanted)
            for name, wanted in self.patterns.items()
        )


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Units of one pool, whose name may have fields of the host.

    `otherwise` is the pool of hosts without such a field; None: they need nothing. `verbs` None:
    all.
    """

    pool: str
    units: int = 1
    otherwise: str | None = None
    verbs: frozenset[str] | None = None
    where: Condition = field(default_factory=Condition)

    def matches(self, host: Fields, verbs: Collection[str]) -> bool:
        """Return whether it is about a host that does one of these verbs."""
        if self.verbs is not None and self.verbs.isdisjoint(verbs):
            return False
        return self.where.holds(host)

    def pool_of(self, host: Fields) -> str | None:
        """Return the name of the pool for a host; None: it needs none."""
        values = {name: value_of(host, name) for name in FIELD.findall(self.pool)}
        if not all(values.values()):
            return self.otherwise
        return FIELD.sub(lambda found: _safe(values[found[1]] or ""), self.pool)


@dataclass(frozen=True, kw_only=True)
class Needs:
    """Units by pool; empty: the work is not limited. `exempt`: counted, but never held back."""

    units: Mapping[str, int]
    exempt: bool = False


def needs_of(rules: Iterable[Rule], exempt: Iterable[Condition], host: Fields) -> Needs:
    """Return what a host needs by the rules that match it."""
    units: dict[str, int] = {}
    for rule in rules:
        if (pool := rule.pool_of(host)) is not None:
            units[pool] = units.get(pool, 0) + rule.units
    return Needs(units=units, exempt=any(one.holds(host) for one in exempt))


def fixed_pools(rules: Collection[Rule]) -> list[str]:
    """Return the names of pools without fields, which must exist when a process starts."""
    named = {rule.pool for rule in rules if not FIELD.search(rule.pool)}
    return sorted(named | {rule.otherwise for rule in rules if rule.otherwise})


def fields_of(rules: Iterable[Rule], exempt: Iterable[Condition]) -> set[str]:
    """Return the names of all fields that rules and exemptions need."""
    rules = [*rules]
    names = {name for rule in rules for name in FIELD.findall(rule.pool)}
    conditions = (*exempt, *(rule.where for rule in rules))
    return names | {name for one in conditions for name in one.patterns}


def value_of(host: Fields, name: str) -> str | None:
    """Return a field of a host as text; None: there is none, or it is an object."""
    head, _, below = name.partition(".")
    value: Any = host.get(head)
    if below:
        value = value.get(below) if isinstance(value, Mapping) else None
    return str(value) if isinstance(value, str | int | float) and value != "" else None


def converted(content: Mapping[str, Any], kind: type[R]) -> R:
    """Return the content of a rules file as a Struct. Raises RulesError."""
    try:
        return convert(content, type=kind)
    except ValidationError as error:
        raise RulesError(str(error)) from error


def read(path: Path, parse: Callable[[Mapping[str, Any]], R]) -> R:
    """Read a rules file; `parse` converts its content. Raises RulesError, OSError."""
    return parsed(path, bytes_of(path), parse)


def bytes_of(path: Path) -> bytes:
    """Return what is in a rules file. Raises RulesError, OSError."""
    with path.open("rb") as file:
        content = file.read(FILE_BYTES_MAX + 1)
    if len(content) > FILE_BYTES_MAX:
        raise RulesError(f"{path}: the file has more than {FILE_BYTES_MAX} bytes")
    return content


def parsed(path: Path, content: bytes, parse: Callable[[Mapping[str, Any]], R]) -> R:
    """Convert what was read from a rules file. Raises RulesError."""
    try:
        return parse(tomllib.loads(content.decode("utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RulesError) as error:
        raise RulesError(f"{path}: {error}") from error


Where = dict[str, str | Annotated[list[str], Meta(min_length=1)]]
PoolName = Annotated[str, Meta(min_length=1)]


class RuleTable(Struct, forbid_unknown_fields=True):
    """A table [[rule]]."""

    pool: PoolName
    units: Annotated[int, Meta(ge=1)] = 1
    otherwise: PoolName | None = None
    verbs: Annotated[list[str], Meta(min_length=1)] | None = None
    where: Where = {}


class ExemptTable(Struct, forbid_unknown_fields=True):
    """A table [[exempt]]."""

    where: Where


def settings_of(given: RuleTable, verbs: Collection[str], system: str) -> dict[str, Any]:
    """Return what a table states, checked, as arguments of `Rule`. Raises RulesError.

    Args:
        given: the rule.
        verbs: those of the system.
        system: its name, for people.
    """
    if set("{}") & set(FIELD.sub("", given.pool) + (given.otherwise or "")):
        raise RulesError(
            f"pool '{given.pool}': write a field of the host as {{NAME}}, once in 'pool', not in"
            " 'otherwise'."
        )
    for verb in given.verbs or ():
        if verb not in verbs:
            raise RulesError(
                f"'{verb}' is not a verb of {system}; the verbs are {', '.join(verbs)}."
            )
    return {
        "pool": given.pool,
        "units": given.units,
        "otherwise": given.otherwise,
        "verbs": None if given.verbs is None else frozenset(given.verbs),
        "where": condition_of(given.where),
    }


def exemptions(given: Iterable[ExemptTable]) -> tuple[Condition, ...]:
    """Return the conditions of the tables [[exempt]]. Raises RulesError."""
    exempt = tuple(condition_of(one.where) for one in given)
    if not all(condition.patterns for condition in exempt):
        raise RulesError("each [[exempt]] needs 'where' with a field.")
    return exempt


def condition_of(given: Where) -> Condition:
    """Return the condition that `where` states. Raises RulesError."""
    for name in given:
        if not FIELD.fullmatch(f"{{{name}}}"):
            raise RulesError(f"'{name}' in 'where' is not a field of a host.")
    return Condition(
        patterns={
            name: (wanted,) if isinstance(wanted, str) else tuple(wanted)
            for name, wanted in given.items()
        }
    )


def _safe(value: str) -> str:
    return "-".join(NAME.findall(value)) or "-"
