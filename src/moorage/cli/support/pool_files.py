"""Files of pools in TOML or YAML, and their differences to the existing pools.

A file has one table, `pools`, from names of pools to their properties, which are those of
`wire.admission.PoolWanted`. Durations are seconds, or texts such as `20m`.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

import msgspec

from moorage.cli.support.documents import YAML_ENDINGS, reason_of, yaml_read
from moorage.cli.support.durations import NONE, fair_share_parse, pacing_parse
from moorage.cli.support.output import USAGE, Failure
from moorage.cli.support.views.pool_text import PROPERTIES, paced, property_text, wanted_of
from moorage.wire.admission import DURATIONS, Pacing, Pool, PoolWanted
from moorage.wire.durations import seconds_of


@dataclass(frozen=True, slots=True)
class Difference:
    """The description of one pool in a file, and its differences to the existing pool."""

    name: str
    action: Literal["create", "change", "keep"]
    wanted: PoolWanted
    """The description, with the generation of the existing pool; 0 if there is none."""
    changes: dict[str, tuple[Any, Any]]
    """Old and new values by property; for a new pool the old ones are the defaults."""

    def lines(self) -> list[str]:
        """Return the lines to print."""
        if self.action == "keep":
            return [f"= {self.name}"]
        sign = "+" if self.action == "create" else "~"
        return [
            f"{sign} {self.name}",
            *(
                f"    {name}: {property_text(name, after)}"
                if self.action == "create"
                else f"    {name}: {property_text(name, before)} -> {property_text(name, after)}"
                for name, (before, after) in self.changes.items()
            ),
        ]


def read(path: str) -> dict[str, PoolWanted]:
    """Return the pools that a file describes. Raises Failure: 2."""
    import tomllib  # deferred: most commands about pools read no file

    try:
        text = Path(path).read_text()
        described: Any = yaml_read(text) if path.endswith(YAML_ENDINGS) else tomllib.loads(text)
    except (OSError, ValueError) as error:
        raise Failure(USAGE, f"cannot read {path}: {reason_of(error)}") from None
    pools = described.get("pools") if isinstance(described, dict) else None
    if not isinstance(pools, dict) or described.keys() != {"pools"}:
        raise Failure(USAGE, f"{path}: the file must have one table, 'pools', and nothing else")
    wanted = {}
    for name, properties in pools.items():
        try:
            wanted[str(name)] = _wanted({} if properties is None else properties)
        except ValueError as error:
            raise Failure(USAGE, f"{path}: pool {name}: {error}") from None
    return wanted


def _wanted(properties: Any) -> PoolWanted:
    """Return the description of a pool. Raises ValueError."""
    if not isinstance(properties, dict):
        raise ValueError("the properties of a pool must be a table")
    unknown = properties.keys() - {*PROPERTIES}
    if unknown:
        raise ValueError(_unknown(min(map(str, unknown)), PROPERTIES))
    return msgspec.convert(
        {name: _value(name, value) for name, value in properties.items()}, PoolWanted
    )


def _unknown(name: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches  # deferred: most names are right

    near = "".join(f" (did you mean '{one}'?)" for one in get_close_matches(name, known, 1))
    return f"unknown property '{name}'{near}; known: {', '.join(known)}"


def _value(name: str, value: Any) -> Any:
    if name == "pacing":
        return _pacing(value)
    if name == "fair_share" and value is not None:
        return _fair_share(value)
    if value == NONE:
        return None
    return _seconds(value) if name in DURATIONS else value


def _pacing(value: Any) -> Any:
    if isinstance(value, str):
        parsed = pacing_parse(value)
        return msgspec.to_builtins(parsed)
    if isinstance(value, dict):
        known = [field.name for field in fields(Pacing)]
        unknown = value.keys() - {*known}
        if unknown:
            raise ValueError(_unknown(min(map(str, unknown)), known))
        return {name: one if name == "burst" else _seconds(one) for name, one in value.items()}
    return value


def _fair_share(value: Any) -> Any:
    if isinstance(value, str):
        return msgspec.to_builtins(fair_share_parse(value))
    if isinstance(value, dict):
        return {name: _seconds(one) if name == "half_life" else one for name, one in value.items()}
    return value


def _seconds(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not a duration: use seconds, or a text such as '20m'")
    return seconds_of(value) if isinstance(value, str) else value


def differences(wanted: Mapping[str, PoolWanted], there: Iterable[Pool]) -> list[Difference]:
    """Compare descriptions with the existing pools; other existing pools are ignored."""
    pools = {pool.name: pool for pool in there}
    return [_difference(name, one, pools.get(name)) for name, one in wanted.items()]


def _difference(name: str, wanted: PoolWanted, pool: Pool | None) -> Difference:
    generation = 0 if pool is None else pool.generation
    before: PoolWanted | Pool = PoolWanted() if pool is None else pool
    changes = {}
    for what in PROPERTIES:
        was, shall = getattr(before, what), getattr(wanted, what)
        if what == "pacing":
            was = paced(was, before.limit, before.hold)
            units = pool.units if wanted.limit is None and pool is not None else wanted.limit
            units = None if wanted.per_member is not None else units
            shall = paced(shall, units, wanted.hold)
        if was != shall:
            changes[what] = (was, shall)
    action: Literal["create", "change", "keep"] = "change" if changes else "keep"
    return Difference(
        name,
        "create" if pool is None else action,
        replace(wanted, generation=generation),
        changes,
    )


def described(pool: Pool) -> dict[str, Any]:
    """Return the properties of a pool as in a file, without those that have their defaults."""
    usual = PoolWanted()
    wanted = {
        name: value
        for name, value in wanted_of(pool).items()
        if name in PROPERTIES and value != getattr(usual, name)
    }
    return {
        name: value
        if isinstance(value, int | dict | list) and name not in DURATIONS
        else property_text(name, value)
        for name, value in sorted(wanted.items(), key=lambda item: PROPERTIES.index(item[0]))
    }


def toml_of(pools: Iterable[Pool]) -> list[str]:
    """Return the lines of a TOML file that describes pools: applying it to them changes nothing."""
    lines = ["[pools]"]
    for pool in pools:
        lines += ["", f"[pools.{_toml(pool.name)}]"]
        if pool.slots:
            lines.append("# The limit of this pool is its slots, which this file does not have.")
        lines += [f"{name} = {_toml(value)}" for name, value in described(pool).items()]
    return lines


def _toml(value: Any) -> str:
    """Write a value in TOML; texts are written as in JSON, of which TOML has all escapes."""
    if isinstance(value, dict):
        members = ", ".join(f"{_toml(name)} = {_toml(one)}" for name, one in value.items())
        return f"{{ {members} }}" if members else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    text = json.dumps(value, ensure_ascii=False)
    return "".join(one if one.isprintable() else f"\\U{ord(one):08x}" for one in text)
