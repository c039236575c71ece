"""Values of the naive model as those of the rules."""

from moorage.core.fleet.model import Goal, MachineReport, Phase
from moorage.core.fleet.parts import ClassSpec, PartSpec, part_id
from moorage.core.ids import ConsumerId, ProviderId
from tests.core.fleet import model as naive
from tests.core.fleet.build import A1, failure
from tests.core.fleet.model import Held, Key, Sent


def provider(key: Key) -> ProviderId:
    """Return the provider of a class."""
    return part_id(A1, key[0])


def goal_of(goal: naive.Goal | None) -> Goal | None:
    """Return a goal of the model as one of the rules."""
    if goal is None:
        return None
    return Goal(percent=float(goal)) if isinstance(goal, str) else Goal(amount=goal)


def specs(listed: dict[Key, Held]) -> list[PartSpec]:
    """Return the parts of a register."""
    parts: dict[str, dict[str, ClassSpec]] = {}
    for (part, name), held in listed.items():
        one = ClassSpec(held.eligible, held.volatile, step_size=held.step)
        parts.setdefault(part, {})[name] = one
    return [PartSpec(part_id(A1, part), part, classes) for part, classes in parts.items()]


def report_of(sent: Sent) -> MachineReport:
    """Return a report of the model as one of the rules."""
    actual: dict[ProviderId, dict[str, int]] = {}
    for key, amount in sent.actual.items():
        actual.setdefault(provider(key), {})[key[1]] = amount
    consumers = None if sent.consumers is None else frozenset(map(ConsumerId, sent.consumers))
    phase = Phase.DONE if sent.done else Phase.PREPARING
    broken = failure() if sent.failed else None
    return MachineReport(sent.boot, sent.generation, 0, phase, actual, consumers, broken)
