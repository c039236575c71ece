"""Which units a node needs for which verb: the rules of an operator.

Without a file there is one rule: every verb that makes a node busy takes a unit of one pool. A file
(TOML) has one table for each rule; a request takes the units of all rules that match it, at once or
not at all:

    [[rule]]
    pool = "deploy/rack-{properties.rack}"   # fields of the node, in braces
    otherwise = "deploy/rack-unknown"        # if the node has no such field; without it: no unit
    verbs = ["active", "rebuild"]            # by default all that make a node busy
    units = 1
    where = { deploy_interface = ["direct", "ansible"], "properties.site" = ["fra-*"] }
    first_of_image = true                    # only until a node of the same conductor has the image

    [[exempt]]                               # counted, but never held back
    where = { boot_interface = ["*virtual-media*"] }

Tables `[[client]]` say how clients of the gate wait, see `clients.py`.
"""

import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct, ValidationError, convert

from moorage.integrations.ironic.clients import ClientPolicy, ClientTable
from moorage.integrations.ironic.states import EVENTS, VERBS_OF_STATE, Requirement

FIELD = re.compile(r"\{([a-z_]+(?:\.[A-Za-z0-9_.-]+)?)\}")
"""A field in the name of a pool: `{conductor}`, or below an object: `{properties.rack}`."""

NAME = re.compile(r"[A-Za-z0-9._-]+")
"""What a value may consist of in the name of a pool; other characters are replaced by `-`."""

IMAGE = "instance_info.image_source"

FIELDS = (
    *("uuid", "name", "provision_state", "provision_updated_at", "last_error", "reservation"),
    *("instance_info", "maintenance", "extra", "owner", "lessee"),
)
"""Fields of a node that are read whatever the rules are."""

CONDUCTOR = "conductor"
"""Only read if a rule needs it: Ironic 39 has it in details only, which are larger."""

RULES_MAX = 100


class RulesError(ValueError):
    """A rules file is not valid; the message says what to change."""


@dataclass(frozen=True, kw_only=True)
class Condition:
    """Fields of a node, each with the patterns of which one must match; none: every node."""

    patterns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def holds(self, node: Mapping[str, Any]) -> bool:
        """Return whether a node meets it."""
        return all(
            any(fnmatchcase(value_of(node, name) or "", one) for one in wanted)
            for name, wanted in self.patterns.items()
        )


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Units of one pool, whose name may have fields of the node.

    `otherwise` is the pool of nodes without such a field; None: they need nothing. `verbs` None:
    all. `first_of_image`: only until another node of the same conductor has the image.
    """

    pool: str
    units: int = 1
    otherwise: str | None = None
    verbs: frozenset[str] | None = None
    where: Condition = field(default_factory=Condition)
    first_of_image: bool = False

    def pool_of(self, node: Mapping[str, Any]) -> str | None:
        """Return the name of the pool for a node; None: it needs none."""
        values = {name: value_of(node, name) for name in FIELD.findall(self.pool)}
        if not all(values.values()):
            return self.otherwise
        return FIELD.sub(lambda found: _safe(values[found[1]] or ""), self.pool)


@dataclass(frozen=True, kw_only=True)
class Needs:
    """Units by pool; empty: the request is not limited. `exempt`: counted, but never held back."""

    units: Mapping[str, int]
    exempt: bool = False


@dataclass(frozen=True, kw_only=True)
class Rules:
    """All rules of an operator."""

    rules: tuple[Rule, ...]
    exempt: tuple[Condition, ...] = ()
    clients: tuple[ClientPolicy, ...] = ()

    @classmethod
    def of_pool(cls, pool: str) -> "Rules":
        """Return the rules without a file: each busy node has one unit of a pool."""
        return cls(rules=(Rule(pool=pool),))

    @property
    def fields(self) -> list[str]:
        """The fields to read of one node, as Ironic's parameter `fields` names them."""
        return sorted({*self.listed, CONDUCTOR})

    @property
    def listed(self) -> list[str]:
        """The fields to read of all nodes: with the conductor only if a rule needs it."""
        names = {name for rule in self.rules for name in FIELD.findall(rule.pool)}
        conditions = (*self.exempt, *(rule.where for rule in self.rules))
        names |= {name for one in conditions for name in one.patterns}
        names |= {CONDUCTOR for rule in self.rules if rule.first_of_image}
        return sorted({*FIELDS, *(name.partition(".")[0] for name in names)})

    @property
    def pools(self) -> list[str]:
        """The names of pools without fields, which must exist when a process starts."""
        named = {rule.pool for rule in self.rules if not FIELD.search(rule.pool)}
        return sorted(named | {rule.otherwise for rule in self.rules if rule.otherwise})

    def needs(
        self, node: Mapping[str, Any], verbs: Collection[str], warm: Collection[tuple[str, str]]
    ) -> Needs:
        """Return what a node needs for a verb.

        Args:
            node: its fields.
            verbs: the verb; several if only the state is known to which they lead.
            warm: the conductors and images for which `first_of_image` is over.
        """
        units: dict[str, int] = {}
        for rule in self.rules:
            if rule.verbs is not None and rule.verbs.isdisjoint(verbs):
                continue
            if not rule.where.holds(node) or (rule.first_of_image and image_of(node) in warm):
                continue
            if (pool := rule.pool_of(node)) is not None:
                units[pool] = units.get(pool, 0) + rule.units
        return Needs(units=units, exempt=any(one.holds(node) for one in self.exempt))


def is_forced(needs: Needs, requirement: Requirement) -> bool:
    """Return whether units are granted at once, over the limit if necessary."""
    return needs.exempt or requirement is Requirement.FORCED


def image_of(node: Mapping[str, Any]) -> tuple[str, str]:
    """Return the conductor and the image of a node, each empty if there is none."""
    return value_of(node, CONDUCTOR) or "", value_of(node, IMAGE) or ""


def warm_of(nodes: Iterable[Mapping[str, Any]]) -> set[tuple[str, str]]:
    """Return the conductors and images of the nodes that have been deployed."""
    return {image_of(node) for node in nodes if node.get("provision_state") == "active"}


def verbs_of(state: str) -> frozenset[str]:
    """Return the verbs that lead to a busy state."""
    return VERBS_OF_STATE.get(state, frozenset())


def value_of(node: Mapping[str, Any], name: str) -> str | None:
    """Return a field of a node as text; None: there is none, or it is an object."""
    head, _, below = name.partition(".")
    value: Any = node.get(head)
    if below:
        value = value.get(below) if isinstance(value, Mapping) else None
    return str(value) if isinstance(value, str | int | float) and value != "" else None


def read(path: Path) -> Rules:
    """Read a rules file. Raises RulesError, OSError."""
    try:
        return parse(tomllib.loads(path.read_text("utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RulesError) as error:
        raise RulesError(f"{path}: {error}") from error


def parse(content: Mapping[str, Any]) -> Rules:
    """Convert the content of a rules file. Raises RulesError."""
    try:
        file = convert(content, type=_File)
    except ValidationError as error:
        raise RulesError(str(error)) from error
    exempt = tuple(_condition(one.where) for one in file.exempt)
    if not all(condition.patterns for condition in exempt):
        raise RulesError("each [[exempt]] needs 'where' with a field.")
    return Rules(
        rules=tuple(_rule(one) for one in file.rule),
        exempt=exempt,
        clients=tuple(one.policy() for one in file.client),
    )


Where = dict[str, str | list[str]]
Pool = Annotated[str, Meta(min_length=1)]


class _Rule(Struct, forbid_unknown_fields=True):
    """A table [[rule]]."""

    pool: Pool
    units: Annotated[int, Meta(ge=1)] = 1
    otherwise: Pool | None = None
    verbs: Annotated[list[str], Meta(min_length=1)] | None = None
    where: Where = {}
    first_of_image: bool = False


class _Exempt(Struct, forbid_unknown_fields=True):
    """A table [[exempt]]."""

    where: Where


class _File(Struct, forbid_unknown_fields=True):
    """The whole file."""

    rule: Annotated[list[_Rule], Meta(min_length=1, max_length=RULES_MAX)]
    exempt: Annotated[list[_Exempt], Meta(max_length=RULES_MAX)] = []
    client: Annotated[list[ClientTable], Meta(max_length=RULES_MAX)] = []


def _rule(given: _Rule) -> Rule:
    if set("{}") & set(FIELD.sub("", given.pool) + (given.otherwise or "")):
        raise RulesError(f"pool '{given.pool}': a field is like {{conductor}}.")
    for verb in given.verbs or ():
        if verb not in EVENTS:
            raise RulesError(f"'{verb}' is no verb of Ironic; the verbs are {', '.join(EVENTS)}.")
    return Rule(
        pool=given.pool,
        units=given.units,
        otherwise=given.otherwise,
        verbs=None if given.verbs is None else frozenset(given.verbs),
        where=_condition(given.where),
        first_of_image=given.first_of_image,
    )


def _condition(given: Where) -> Condition:
    for name in given:
        if not FIELD.fullmatch(f"{{{name}}}"):
            raise RulesError(f"'{name}' in 'where' is no field of a node.")
    return Condition(
        patterns={
            name: (wanted,) if isinstance(wanted, str) else tuple(wanted)
            for name, wanted in given.items()
        }
    )


def _safe(value: str) -> str:
    return "-".join(NAME.findall(value)) or "-"
