"""The offers of an agent's parts, as values of the ledger."""

from moorage.core.fleet import offers
from moorage.core.fleet.model import Agent, Part, State
from moorage.core.ids import ProviderId
from moorage.core.ledger.managed import ClassOffer, MachineOffer, PartOffer

UnitSizes = tuple[int | None, int]
"""`max_unit` and `step_size`."""


def class_offer(agent: Agent, uuid: ProviderId, name: str) -> ClassOffer | None:
    """Return what a part offers of a class; None: the agent does not manage it."""
    part = agent.parts.get(uuid)
    if part is None or name not in part.classes:
        return None
    return _class_offer(agent, part, name)


def machine_offer(agent: Agent, before: Agent | None = None) -> MachineOffer:
    """Return everything that the ledger takes over from a registered agent.

    `before` is the agent before a change of unit sizes, if there may be one.
    """
    assert agent.root is not None
    assert agent.facts is not None
    return MachineOffer(
        agent=agent.uuid,
        root=agent.root,
        root_name=agent.facts.hostname if agent.owns_root else None,
        parts={
            uuid: PartOffer(
                name=part.name,
                parent=None if uuid == agent.root else part.parent or agent.root,
                classes={
                    name: _class_offer(agent, part, name, _sizes(before, uuid, name))
                    for name in part.classes
                },
            )
            for uuid, part in agent.parts.items()
        },
        withheld=offers.why_withheld(agent),
        retired=agent.state is State.DECOMMISSIONED,
    )


def _sizes(agent: Agent | None, uuid: ProviderId, name: str) -> UnitSizes | None:
    """Return the unit sizes that a machine demands; None: it does not have the class."""
    part = None if agent is None else agent.parts.get(uuid)
    held = None if part is None else part.classes.get(name)
    return None if held is None else (held.max_unit, held.step_size)


def _class_offer(
    agent: Agent, part: Part, name: str, before: UnitSizes | None = None
) -> ClassOffer:
    held = part.classes[name]
    return ClassOffer(
        desired=held.desired,
        offered=offers.offered(agent, part, held),
        max_unit=held.max_unit,
        step_size=held.step_size,
        registered=part.present and held.present,
        resized=before not in (None, (held.max_unit, held.step_size)),
    )
