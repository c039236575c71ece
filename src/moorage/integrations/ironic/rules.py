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
    expected = "10m"                         # how long such work lasts, until that is learned

    [expected]                               # the same by verb, for rules that do not say it
    all = "10m"
    clean = "2h"

    [[exempt]]                               # counted, but never held back
    where = { boot_interface = ["*virtual-media*"] }

Tables `[[client]]` say how clients of the gate wait, see `clients.py`.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct

from moorage.integrations.ironic.clients import (
    HOLD_SECONDS,
    HOLD_SECONDS_MAX,
    RETRY_AFTER_MAX,
    TRIES_MAX,
    ClientPolicy,
    Fitting,
)
from moorage.integrations.ironic.states import EVENTS, VERBS_OF_STATE, Requirement
from moorage.integrations.provisioning import rules
from moorage.integrations.provisioning.rules import (
    RULES_MAX,
    Condition,
    ExemptTable,
    Needs,
    Rule,
    RulesError,
    RuleTable,
    value_of,
)
from moorage.wire.durations import seconds_of

IMAGE = "instance_info.image_source"

EVERY_VERB = "all"
"""In place of a verb: how long work for every verb lasts of which nothing else is said."""

EXPECTED_MAX = 7 * 86_400.0

FIELDS = (
    *("uuid", "name", "provision_state", "provision_updated_at", "last_error", "reservation"),
    *("instance_info", "maintenance", "extra", "owner", "lessee"),
)
"""Fields of a node that are read whatever the rules are."""

CONDUCTOR = "conductor"
"""Only read if a rule needs it: Ironic 39 has it in details only, which are larger."""


@dataclass(frozen=True, kw_only=True)
class NodeRule(Rule):
    """A rule about nodes.

    `first_of_image`: only until another node of the same conductor has the image. `expected`: how
    long the work lasts in seconds, for whose units it is; None: the rule does not say.
    """

    first_of_image: bool = False
    expected: float | None = None


@dataclass(frozen=True, kw_only=True)
class Rules:
    """All rules of an operator.

    `expected`: how long work lasts in seconds, by verb; `EVERY_VERB`: that of all others.
    """

    rules: tuple[NodeRule, ...]
    exempt: tuple[Condition, ...] = ()
    clients: tuple[ClientPolicy, ...] = ()
    expected: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of_pool(cls, pool: str) -> "Rules":
        """Return the rules without a file: each busy node has one unit of a pool."""
        return cls(rules=(NodeRule(pool=pool),))

    @property
    def fields(self) -> list[str]:
        """The fields to read of one node, as Ironic's parameter `fields` names them."""
        return sorted({*self.listed, CONDUCTOR})

    @property
    def listed(self) -> list[str]:
        """The fields to read of all nodes: with the conductor only if a rule needs it."""
        names = rules.fields_of(self.rules, self.exempt)
        names |= {CONDUCTOR for rule in self.rules if rule.first_of_image}
        return sorted({*FIELDS, *(name.partition(".")[0] for name in names)})

    @property
    def pools(self) -> list[str]:
        """The names of pools without fields, which must exist when a process starts."""
        return rules.fixed_pools(self.rules)

    def needs(
        self, node: Mapping[str, Any], verbs: Collection[str], warm: Collection[tuple[str, str]]
    ) -> Needs:
        """Return what a node needs for a verb.

        Args:
            node: its fields.
            verbs: the verb; several if only the state is known to which they lead.
            warm: the conductors and images for which `first_of_image` is over.
        """
        matching = (
            rule
            for rule in self.rules
            if rule.matches(node, verbs) and not (rule.first_of_image and image_of(node) in warm)
        )
        return rules.needs_of(matching, self.exempt, node)

    def expected_of(self, node: Mapping[str, Any], verbs: Collection[str]) -> float | None:
        """Return how long the operator expects work to last, in seconds; None: nothing is said.

        The rules that match come first; of several, and of several verbs, the longest counts.
        """
        own = [
            rule.expected
            for rule in self.rules
            if rule.expected is not None and rule.matches(node, verbs)
        ]
        if own:
            return max(own)
        events = {EVENTS.get(verb) for verb in verbs}
        found = [lasts for verb, lasts in self.expected.items() if EVENTS.get(verb, "") in events]
        return max(found, default=self.expected.get(EVERY_VERB))


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


def expected_seconds(verb: str, text: str) -> float:
    """Return how long work for a verb is expected to last. Raises RulesError."""
    if verb != EVERY_VERB and verb not in EVENTS:
        known = ", ".join((EVERY_VERB, *EVENTS))
        raise RulesError(f"'{verb}' is not a verb that starts work; these verbs are {known}.")
    try:
        seconds = seconds_of(text)
    except ValueError as error:
        raise RulesError(f"expected: {error}") from error
    if not 0 < seconds <= EXPECTED_MAX:
        raise RulesError(f"expected: '{text}' must be above 0 and at most 7d.")
    return seconds


def read(path: Path) -> Rules:
    """Read a rules file. Raises RulesError, OSError."""
    return rules.read(path, parse)


def parse(content: Mapping[str, Any]) -> Rules:
    """Convert the content of a rules file. Raises RulesError."""
    file = rules.converted(content, _File)
    return Rules(
        exempt=rules.exemptions(file.exempt),
        rules=tuple(_rule(one) for one in file.rule),
        clients=tuple(one.policy() for one in file.client),
        expected={verb: expected_seconds(verb, text) for verb, text in file.expected.items()},
    )


class _NodeRuleTable(RuleTable, forbid_unknown_fields=True):
    """A table [[rule]]."""

    first_of_image: bool = False
    expected: str | None = None


class _ClientTable(Struct, forbid_unknown_fields=True):
    """A table [[client]] of a rules file."""

    user_agent: Annotated[str, Meta(min_length=1)]
    hold: Annotated[float, Meta(ge=0, le=HOLD_SECONDS_MAX)] = HOLD_SECONDS
    retry_after: Annotated[int, Meta(ge=1, le=RETRY_AFTER_MAX)] | Fitting = "none"
    tries: Annotated[int, Meta(ge=1, le=TRIES_MAX)] | None = None

    def policy(self) -> ClientPolicy:
        """Return what it says."""
        return ClientPolicy(self.user_agent, self.hold, self.retry_after, self.tries)


class _File(Struct, forbid_unknown_fields=True):
    """The whole file."""

    rule: Annotated[list[_NodeRuleTable], Meta(min_length=1, max_length=RULES_MAX)]
    exempt: Annotated[list[ExemptTable], Meta(max_length=RULES_MAX)] = []
    client: Annotated[list[_ClientTable], Meta(max_length=RULES_MAX)] = []
    expected: dict[str, str] = {}


def _rule(given: _NodeRuleTable) -> NodeRule:
    settings = rules.settings_of(given, EVENTS, "Ironic")
    lasts = None if given.expected is None else expected_seconds(EVERY_VERB, given.expected)
    return NodeRule(**settings, first_of_image=given.first_of_image, expected=lasts)
