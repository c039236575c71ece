"""How agents come into being and register.

An operator creates an agent, or it enrolls and waits for an operator. It registers at each start.
A boot that the server has not seen empties all volatile classes, before the agent is answered.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from moorage.core.clock import Instant
from moorage.core.errors import Code, Error
from moorage.core.fleet import desired, groups, parts, policy, roots
from moorage.core.fleet.agents import (
    changes_of,
    check_active,
    find_active,
    registered,
)
from moorage.core.fleet.boots import check_superseded
from moorage.core.fleet.facts import Changes, Facts
from moorage.core.fleet.model import Agent, MachineFacts, Phase, Policy, Readiness
from moorage.core.fleet.parts import PartSpec
from moorage.core.ids import AgentId, ProviderId, is_normal
from moorage.core.labels import check_labels
from moorage.core.limits import (
    BOOT_ID_LENGTH_MAX,
    IDENTIFIER_LENGTH_MAX,
    NAME_LENGTH_MAX,
    PAST_BOOTS_MAX,
)
from moorage.core.texts import check_plain


class RegisterSpec(Struct, frozen=True):
    """An agent's declaration of its machine at its start.

    `root` None: the server creates a provider with the agent's UUID. `labels` replace those of the
    register before, and never those of operators; None: no labels.
    """

    boot_id: str
    facts: MachineFacts
    parts: Sequence[PartSpec]
    root: ProviderId | None = None
    labels: Mapping[str, str] | None = None


def create(
    facts: Facts,
    now: Instant,
    uuid: AgentId,
    group: str,
    labels: Mapping[str, str],
    wanted: Policy | None,
    who: str,
    root: ProviderId | None = None,
) -> Changes:
    """Create an agent for an operator, or change its group, labels, policy and given root.

    An equal request changes nothing. A group that does not exist is created.

    Args:
        facts: with the agent and both groups, the next free number for a new agent.
        now: wall-clock time.
        uuid: the agent.
        group: its group.
        labels: all labels that operators set; those that only the machine has set stay.
        wanted: its policy; None: unchanged, of a new agent in_service.
        who: the operator.
        root: the provider that it may have as root; None: unchanged.

    Raises INVALID, DECOMMISSIONED, POLICY_FINAL, ROOT_TAKEN.
    """
    before = facts.agents.get(uuid)
    check_labels(labels)
    changes = groups.ensured(facts, now, group)
    if before is None:
        agent = roots.given(facts, _new(facts, now, uuid, group, labels), root)
        made = replace(agent, policy=wanted or Policy.IN_SERVICE, policy_by=who)
        return Changes(groups=changes.groups, agents={uuid: made})
    check_active(before)
    lasting = before.operator_labels
    own = {name: value for name, value in before.labels.items() if name not in lasting}
    together = {**own, **labels}
    check_labels(together)
    after = replace(before, group=group, labels=together, operator_labels=dict(labels))
    after = roots.given(facts, after, root)
    if wanted is not None:
        after = policy.wanted(after, wanted, who)
    after = desired.following(before, after, facts.groups.get(group))
    changes.update(changes_of(before, after, now))
    return changes


def enroll(
    facts: Facts, now: Instant, uuid: AgentId, group: str, labels: Mapping[str, str], who: str
) -> Changes:
    """Create an agent on which nothing is placed until an operator accepts it.

    Args:
        facts: with the agent and the group, and the next free number.
        now: wall-clock time.
        uuid: the agent.
        group: its group, which is created if it does not exist.
        labels: its labels.
        who: the owner of the token that it enrolls with.

    Raises AGENT_EXISTS, DECOMMISSIONED, INVALID.
    """
    if (before := facts.agents.get(uuid)) is not None:
        check_active(before)
        raise Error(
            Code.AGENT_EXISTS,
            f"There is already an agent {uuid}: use the token that it got, or ask an operator for "
            "a new one.",
        )
    check_labels(labels)
    agent = replace(
        _new(facts, now, uuid, group, labels),
        policy=Policy.NO_PROVISION,
        policy_reason=policy.NOT_ACCEPTED,
        policy_by=who,
        accepted=False,
    )
    return Changes(groups=groups.ensured(facts, now, group).groups, agents={uuid: agent})


def register(
    facts: Facts,
    now: Instant,
    uuid: AgentId,
    spec: RegisterSpec,
    born: Mapping[ProviderId, int] | None = None,
    around: Mapping[ProviderId, AgentId | None] | None = None,
) -> Changes:
    """Take over what an agent declares of its machine. An equal register changes nothing.

    In a new boot all volatile classes have nothing, and the machine is preparing.

    Args:
        facts: with the agent, its group, and the agents of the providers around its root.
        now: wall-clock time.
        uuid: the agent.
        spec: what it declares.
        born: the present generations of the machine's providers; others do not exist.
        around: a given root that is new, with all providers above and below it, and the agents that
            manage them.

    Raises AGENT_NOT_FOUND, DECOMMISSIONED, SUPERSEDED_BOOT, ROOT_TAKEN, NOT_ACCEPTED, POLICY_FINAL,
    CLASS_MANAGED, PARENT_UNKNOWN, TREE_LOOP, LIMIT_EXCEEDED, INVALID.
    """
    before = find_active(facts, uuid)
    check_superseded(before, spec.boot_id)
    _check_spec(spec)
    booted = spec.boot_id != before.boot_id
    after = roots.rooted(facts, before, spec.root, around or {})
    if booted:
        after = _booted(after, spec.boot_id)
    labels = {**(spec.labels or {}), **before.operator_labels}
    check_labels(labels)
    merged = parts.merged(after, spec.parts, booted=booted, born=born or {})
    after = _reported(replace(after, facts=spec.facts, parts=merged))
    after = replace(after, labels=labels)
    after = desired.following(before, after, facts.groups.get(before.group))
    if after != before:
        after = replace(after, registered_at=now)
    return changes_of(before, after, now)


def _new(facts: Facts, now: Instant, uuid: AgentId, group: str, labels: Mapping[str, str]) -> Agent:
    if not is_normal(uuid):
        raise Error(
            Code.INVALID,
            f"The id of an agent is a UUID in lower case with dashes, not '{uuid}'.",
        )
    return Agent(
        uuid,
        facts.next_number,
        group,
        now,
        now,
        labels=dict(labels),
        operator_labels=dict(labels),
        generation=1,
    )


def _booted(agent: Agent, boot_id: str) -> Agent:
    """Return an agent in a new boot; generations of reports continue, so none is used twice."""
    past = agent.past_boots if agent.boot_id is None else (*agent.past_boots, agent.boot_id)
    return replace(
        agent,
        boot_id=boot_id,
        past_boots=past[-PAST_BOOTS_MAX:],
        readiness=Readiness.PREPARING,
        phase=Phase.PREPARING,
        report=None,
        confirmed=frozenset(),
        failure=None,
    )


def _reported(agent: Agent) -> Agent:
    """Return the agent without its last report, if a class of it has vanished and is back.

    A repeat of the report would change nothing, so nothing of the class would be there for ever.
    """
    said = {} if agent.report is None else agent.report.actual
    is_true = all(
        said.get(pair.provider, {}).get(pair.resource_class, managed.actual) == managed.actual
        for pair, managed in registered(agent)
    )
    return agent if is_true else replace(agent, report=None)


def _check_spec(spec: RegisterSpec) -> None:
    _check_text("boot_id", spec.boot_id, 1, BOOT_ID_LENGTH_MAX)
    _check_text("hostname", spec.facts.hostname, 1, NAME_LENGTH_MAX)
    _check_text("kernel", spec.facts.kernel, 0, IDENTIFIER_LENGTH_MAX)
    _check_text("version", spec.facts.version, 0, IDENTIFIER_LENGTH_MAX)


def _check_text(name: str, text: str, least: int, most: int) -> None:
    if not least <= len(text) <= most:
        raise Error(Code.INVALID, f"{name} must have {least} to {most} characters.")
    check_plain(name, text)
