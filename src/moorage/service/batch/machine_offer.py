"""What the ledger takes over from an agent: the offers of its parts, as values of the ledger."""

from moorage.core.fleet import offers
from moorage.core.fleet.model import Agent, Part
from moorage.core.ids import ProviderId
from moorage.core.ledger.managed import ClassOffer, MachineOffer, PartOffer


def class_offer(agent: Agent, uuid: ProviderId, name: str) -> ClassOffer | None:
    """Return what a part offers of a class; None: the agent does not manage it."""
    part = agent.parts.get(uuid)
    if part is None or name not in part.classes:
        return None
    return _class_offer(agent, part, name)


def machine_offer(agent: Agent, root_name: str) -> MachineOffer:
    """Return everything that the ledger takes over from a registered agent.

    Args:
        agent: with a root.
        root_name: the name of the root, with which the names of parts begin.
    """
    assert agent.root is not None
    return MachineOffer(
        agent=agent.uuid,
        root=agent.root,
        parts={
            uuid: PartOffer(
                name=root_name if uuid == agent.root else f"{root_name}_{part.name}",
                parent=part.parent if part.parent is not None or uuid == agent.root else agent.root,
                classes={name: _class_offer(agent, part, name) for name in part.classes},
            )
            for uuid, part in agent.parts.items()
        },
        withheld=offers.why_withheld(agent),
    )


def _class_offer(agent: Agent, part: Part, name: str) -> ClassOffer:
    held = part.classes[name]
    return ClassOffer(
        desired=held.desired,
        offered=offers.offered(agent, part, held),
        max_unit=held.max_unit,
        step_size=held.step_size,
    )
