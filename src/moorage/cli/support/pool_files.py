"""Files of pools in TOML or YAML, and their differences to the existing pools.

A file has the table `pools`, from names of pools to their properties, which are those of
`wire.admission.PoolWanted`, or the table `templates`, from names of templates to the properties of
their pools and `idle` and `pools_max`, or both. Durations are seconds, or texts such as `20m`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec

from moorage.cli.support.documents import YAML_ENDINGS, reason_of, yaml_read
from moorage.cli.support.durations import AUTO, NONE, fair_share_parse, pacing_parse
from moorage.cli.support.output import USAGE, Failure
from moorage.cli.support.views.pool_text import (
    PROPERTIES,
    acts,
    paced,
    property_text,
    wanted_of,
    written_limit,
)
from moorage.wire.admission import (
    DURATIONS,
    Adaptive,
    Pacing,
    Pool,
    PoolWanted,
)
from moorage.wire.durations import seconds_of

if TYPE_CHECKING:
    from moorage.wire.pools.templates import PoolTemplate, PoolTemplateWanted

T = TypeVar("T")

SIZES = ("idle", "pools_max")
"""Properties of a template besides those of its pools."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The description of a pool or template in a file, and its differences to the existing one."""

    name: str
    action: Literal["create", "change", "keep"]
    wanted: PoolWanted | PoolTemplateWanted
    """The description, with the generation of the existing one; 0 if there is none."""
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


@dataclass(frozen=True, slots=True)
class Described:
    """What a file describes, by name."""

    pools: dict[str, PoolWanted]
    templates: dict[str, PoolTemplateWanted]


def read(path: str) -> dict[str, PoolWanted]:
    """Return the pools that a file describes. Raises Failure: 2."""
    return read_all(path).pools


def read_all(path: str) -> Described:
    """Return the pools and templates that a file describes. Raises Failure: 2."""
    import tomllib  # deferred: most commands about pools read no file

    try:
        text = Path(path).read_text()
        described: Any = yaml_read(text) if path.endswith(YAML_ENDINGS) else tomllib.loads(text)
    except (OSError, ValueError) as error:
        raise Failure(USAGE, f"cannot read {path}: {reason_of(error)}") from None
    tables = described if isinstance(described, dict) else {}
    known = tables.keys() <= {"pools", "templates"}
    if not (tables and known and all(isinstance(one, dict) for one in tables.values())):
        raise Failure(
            USAGE, f"{path}: the file must have the table 'pools' or 'templates', and nothing else"
        )
    return Described(
        _converted(path, "pool", tables.get("pools", {}), _wanted),
        _converted(path, "template", tables.get("templates", {}), _template),
    )


def _converted(
    path: str, noun: str, table: dict[Any, Any], convert: Callable[[Any], T]
) -> dict[str, T]:
    wanted = {}
    for name, properties in table.items():
        try:
            wanted[str(name)] = convert({} if properties is None else properties)
        except ValueError as error:
            raise Failure(USAGE, f"{path}: {noun} {name}: {error}") from None
    return wanted


def _template(properties: Any) -> PoolTemplateWanted:
    """Return the description of a template. Raises ValueError."""
    from moorage.wire.pools.templates import PoolTemplateWanted  # deferred: most files have none

    if not isinstance(properties, dict):
        raise ValueError("the properties of a template must be a table")
    sizes = {name: value for name, value in properties.items() if name in SIZES}
    if "idle" in sizes:
        sizes["idle"] = _seconds(sizes["idle"])
    rest = {name: value for name, value in properties.items() if name not in SIZES}
    pool = _wanted(rest, (*PROPERTIES, *SIZES))
    return replace(msgspec.convert({"pool": {}, **sizes}, PoolTemplateWanted), pool=pool)


def _wanted(properties: Any, known: Sequence[str] = PROPERTIES) -> PoolWanted:
    """Return the description of a pool. Raises ValueError."""
    if not isinstance(properties, dict):
        raise ValueError("the properties of a pool must be a table")
    unknown = properties.keys() - {*PROPERTIES}
    if unknown:
        raise ValueError(_unknown(min(map(str, unknown)), known))
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
    if name == "adaptive":
        return _adaptive(value)
    return _seconds(value) if name in DURATIONS else value


def _pacing(value: Any) -> Any:
    if isinstance(value, str):
        parsed = pacing_parse(value)
        return msgspec.to_builtins(parsed)
    if isinstance(value, dict):
        _check_known(value, Pacing)
        return {name: one if name == "burst" else _seconds(one) for name, one in value.items()}
    return value


def _adaptive(value: Any) -> Any:
    if isinstance(value, str):
        # Deferred: most pools have no adaptive limit.
        from moorage.cli.support.views.adaptive_text import adaptive_parse

        return msgspec.to_builtins(adaptive_parse(value))
    if isinstance(value, dict):
        _check_known(value, Adaptive)
    return value


def _check_known(value: dict[Any, Any], type_: type[Pacing | Adaptive]) -> None:
    """Raise ValueError if a table has a property that the type does not have."""
    known = [field.name for field in fields(type_)]
    unknown = value.keys() - {*known}
    if unknown:
        raise ValueError(_unknown(min(map(str, unknown)), known))


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


def template_differences(
    wanted: Mapping[str, PoolTemplateWanted], there: Iterable[PoolTemplate]
) -> list[Difference]:
    """Compare descriptions with the existing templates; other existing ones are ignored."""
    templates = {template.name: template for template in there}
    return [_template_difference(name, one, templates.get(name)) for name, one in wanted.items()]


def _template_difference(
    name: str, wanted: PoolTemplateWanted, template: PoolTemplate | None
) -> Difference:
    from moorage.wire.pools.templates import PoolTemplateWanted  # deferred: see above

    usual = PoolTemplateWanted(pool=PoolWanted())
    before: PoolTemplateWanted | PoolTemplate = usual if template is None else template
    pairs = {what: (getattr(before.pool, what), getattr(wanted.pool, what)) for what in PROPERTIES}
    pairs["pacing"] = (
        None if template is None else pacing_of(template),
        paced(wanted.pool.pacing, wanted.pool.limit, wanted.pool.hold),
    )
    if template is not None:
        pairs["adaptive"] = (adaptive_of(template), wanted.pool.adaptive)
    pairs |= {what: (getattr(before, what), getattr(wanted, what)) for what in SIZES}
    changes = {what: (was, shall) for what, (was, shall) in pairs.items() if was != shall}
    action: Literal["create", "change", "keep"] = "change" if changes else "keep"
    return Difference(
        name,
        "create" if template is None else action,
        replace(wanted, generation=0 if template is None else template.generation),
        changes,
    )


def pacing_of(template: PoolTemplate) -> Pacing | None:
    """Return the pacing of the pools of a template."""
    pacing = template.pool.pacing
    return None if pacing is None else Pacing(**asdict(pacing))


def adaptive_of(template: PoolTemplate) -> Adaptive | None:
    """Return the adaptive limit of the pools of a template."""
    adaptive = template.pool.adaptive
    return None if adaptive is None else Adaptive(**asdict(adaptive))


def _difference(name: str, wanted: PoolWanted, pool: Pool | None) -> Difference:
    generation = 0 if pool is None else pool.generation
    before: PoolWanted | Pool = PoolWanted() if pool is None else pool
    changes = {}
    found = None if pool is None else written_limit(pool)
    for what in PROPERTIES:
        was, shall = getattr(before, what), getattr(wanted, what)
        if what == "limit" and pool is not None:
            was = found
            if was == shall and acts(pool) and acts(wanted):
                wanted = replace(wanted, limit=pool.limit)  # what the pool has found stays
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
    return _unusual({**wanted_of(pool), "limit": written_limit(pool)}, PoolWanted())


def template_described(template: PoolTemplate) -> dict[str, Any]:
    """Return the properties of a template likewise."""
    from moorage.wire.pools.templates import PoolTemplateWanted  # deferred: see above

    wanted = {name: getattr(template.pool, name) for name in PROPERTIES}
    wanted["adaptive"] = adaptive_of(template)
    wanted["pacing"] = pacing_of(template)
    if wanted["pacing"] == paced(AUTO, template.pool.limit, template.pool.hold):
        wanted["pacing"] = AUTO
    sizes = {name: getattr(template, name) for name in SIZES}
    usual = PoolTemplateWanted(pool=PoolWanted())
    return _unusual(wanted, usual.pool) | _unusual(sizes, usual)


def _unusual(
    properties: Mapping[str, Any], usual: PoolWanted | PoolTemplateWanted
) -> dict[str, Any]:
    found = {}
    for name in (*PROPERTIES, *SIZES):
        if name in properties and properties[name] != getattr(usual, name):
            value = properties[name]
            plain = isinstance(value, int | dict | list) and name not in DURATIONS
            found[name] = value if plain else property_text(name, value)
    return found


def toml_of(pools: Iterable[Pool], templates: Iterable[PoolTemplate] = ()) -> list[str]:
    """Return the lines of a TOML file with pools and templates; applying it changes none."""
    lines = ["[pools]"]
    for pool in pools:
        lines += ["", f"[pools.{_toml(pool.name)}]"]
        if pool.slots:
            lines.append("# The limit of this pool is its slots, which this file does not have.")
        lines += [f"{name} = {_toml(value)}" for name, value in described(pool).items()]
    for template in templates:
        lines += ["", f"[templates.{_toml(template.name)}]"]
        lines += [
            f"{name} = {_toml(value)}" for name, value in template_described(template).items()
        ]
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
