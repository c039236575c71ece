"""The parts that a register lists: valid ones, parents first.

The UUID of a part follows from the agent and its name, so a part that returns has its allocations
and goals again.
"""

import uuid
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from moorage.core.errors import Code, Error
from moorage.core.fleet.agents import check_class_name
from moorage.core.fleet.model import Agent, ManagedClass, Part
from moorage.core.ids import AgentId, ProviderId
from moorage.core.limits import (
    AGENT_PARTS_MAX,
    MAX_INT,
    PART_CLASSES_MAX,
    PART_NAME_LENGTH_MAX,
)
from moorage.core.texts import check_plain


class ClassSpec(Struct, frozen=True):
    """A class of a part as the agent registers it, see `ManagedClass`."""

    eligible: int
    volatile: bool = True
    max_unit: int | None = None
    step_size: int = 1


class PartSpec(Struct, frozen=True):
    """A part as the agent registers it. `parent` None: the root of the machine.

    If `provider` is the root itself, neither `name` nor `parent` is used.
    """

    provider: ProviderId
    name: str
    classes: Mapping[str, ClassSpec]
    parent: ProviderId | None = None


def part_id(agent: AgentId, name: str) -> ProviderId:
    """Return the UUID of a part of a machine."""
    return ProviderId(str(uuid.uuid5(uuid.UUID(agent), name)))


def merged(
    agent: Agent, specs: Sequence[PartSpec], *, booted: bool, born: Mapping[ProviderId, int]
) -> dict[ProviderId, Part]:
    """Return the parts of an agent after a register, parents first.

    What is no longer listed stays, and has nothing. Desired amounts are resolved later.

    Args:
        agent: with its root.
        specs: what it registers.
        booted: whether this is a new boot, in which volatile classes have nothing.
        born: the present generations of providers; one that is omitted does not exist.

    Raises INVALID, CLASS_MANAGED, PARENT_UNKNOWN, TREE_LOOP, LIMIT_EXCEEDED.
    """
    _check_count(agent, specs)
    parts: dict[ProviderId, Part] = {}
    for spec in _in_order(agent, specs):
        before = agent.parts.get(spec.provider)
        is_root = spec.provider == agent.root
        parent = None if is_root else spec.parent or agent.root
        if before is not None and before.parent != parent:
            raise Error(
                Code.INVALID,
                f"Part '{spec.name}' cannot move from parent {before.parent} to {parent}: give it "
                "another name.",
            )
        parts[spec.provider] = Part(
            name="" if is_root else spec.name,
            parent=parent,
            classes=_classes(spec, {} if before is None else before.classes, booted),
            born=_born(spec.provider, before, booted, born),
        )
    for provider, part in agent.parts.items():
        if provider not in parts:
            parts[provider] = replace(
                part,
                present=False,
                classes={name: _vanished(managed) for name, managed in part.classes.items()},
                born=_born(provider, part, booted, born),
            )
    return parts


def _check_count(agent: Agent, specs: Sequence[PartSpec]) -> None:
    count = len({*agent.parts, *(spec.provider for spec in specs)})
    if max(count, len(specs)) > AGENT_PARTS_MAX:
        raise Error(
            Code.LIMIT_EXCEEDED,
            f"A machine has at most {AGENT_PARTS_MAX} parts, former ones included, not {count}: "
            "use the names of former parts again.",
        )


def _born(
    provider: ProviderId, before: Part | None, booted: bool, born: Mapping[ProviderId, int]
) -> int:
    """Return the generation that the provider had at the first register of this boot."""
    if booted or before is None:
        return born.get(provider, 0)
    return before.born


def _classes(
    spec: PartSpec, before: Mapping[str, ManagedClass], booted: bool
) -> dict[str, ManagedClass]:
    classes = {}
    for name, one in spec.classes.items():
        held = before.get(name)
        if held is None:
            held = ManagedClass(one.eligible)
        lost = booted and (one.volatile or held.volatile)
        classes[name] = replace(
            held,
            eligible=one.eligible,
            volatile=one.volatile,
            max_unit=one.max_unit,
            step_size=one.step_size,
            actual=0 if lost else held.actual,
            present=True,
        )
    classes |= {name: _vanished(held) for name, held in before.items() if name not in classes}
    if len(classes) > PART_CLASSES_MAX:
        raise Error(
            Code.LIMIT_EXCEEDED,
            f"Part {spec.provider} has {len(classes)} classes, former ones included; at most "
            f"{PART_CLASSES_MAX} are allowed: distribute them over several parts.",
        )
    return classes


def _vanished(managed: ManagedClass) -> ManagedClass:
    return replace(managed, actual=0, present=False)


def _in_order(agent: Agent, specs: Sequence[PartSpec]) -> list[PartSpec]:
    """Return valid specs with parents before their children."""
    by_provider: dict[ProviderId, PartSpec] = {}
    for spec in specs:
        _check_part(agent, spec)
        if spec.provider in by_provider:
            raise Error(Code.INVALID, f"Part '{spec.name}' is listed twice: omit one of them.")
        by_provider[spec.provider] = spec
    for spec in specs:
        if spec.parent not in (None, agent.root) and spec.parent not in by_provider:
            raise Error(
                Code.PARENT_UNKNOWN,
                f"Parent {spec.parent} of part '{spec.name}' is neither the root nor a part of"
                f" this registration: list it, too.",
            )
    ordered: dict[ProviderId, PartSpec] = {}
    waiting = list(by_provider.values())
    while waiting:
        ready = [one for one in waiting if one.parent in (None, agent.root, *ordered)]
        if not ready:
            raise Error(
                Code.TREE_LOOP, f"Part '{waiting[0].name}' is below itself: correct the parents."
            )
        ordered |= {one.provider: one for one in ready}
        waiting = [one for one in waiting if one.provider not in ordered]
    return list(ordered.values())


def _check_part(agent: Agent, spec: PartSpec) -> None:
    if spec.provider == agent.root:
        if not agent.owns_root:
            raise Error(
                Code.CLASS_MANAGED,
                f"Agent {agent.uuid} cannot manage classes of root {agent.root}, which belongs to "
                "another writer: Nova, for example, replaces all inventories of its providers. "
                "Register a child of the root instead.",
            )
        if spec.parent is not None:
            raise Error(Code.INVALID, "The root of the machine has no parent: omit it.")
    else:
        _check_child(agent, spec)
    for name, one in spec.classes.items():
        check_class_name(name)
        _check_class(name, one)


def _check_child(agent: Agent, spec: PartSpec) -> None:
    if not 1 <= len(spec.name) <= PART_NAME_LENGTH_MAX:
        raise Error(Code.INVALID, f"The name of a part has 1 to {PART_NAME_LENGTH_MAX} characters.")
    check_plain("The name of a part", spec.name)
    expected = part_id(agent.uuid, spec.name)
    if spec.provider != expected:
        raise Error(
            Code.INVALID,
            f"The UUID of part '{spec.name}' must be {expected}, not {spec.provider}: the version"
            f" 5 UUID of the part's name in the namespace {agent.uuid}.",
        )


def _check_class(name: str, spec: ClassSpec) -> None:
    if not 0 <= spec.eligible <= MAX_INT:
        raise Error(Code.INVALID, f"eligible of '{name}' must be from 0 to {MAX_INT}.")
    if not 1 <= spec.step_size <= MAX_INT:
        raise Error(Code.INVALID, f"step_size of '{name}' must be from 1 to {MAX_INT}.")
    if spec.max_unit is not None and not 1 <= spec.max_unit <= MAX_INT:
        raise Error(Code.INVALID, f"max_unit of '{name}' must be from 1 to {MAX_INT}, or omitted.")
