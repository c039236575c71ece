"""Who goes where: the moves of each source, and the place of each consumer on it.

The order of authority: `assign`, `vacate`, `stay`, the policy, `release`. A consumer that none
of them covers is a violation, and stays in what is shown.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from moorage.core.ids import AgentId, ConsumerId, ProviderId
from moorage.core.ledger.facts import Facts
from moorage.core.ledger.reshaping.fitting import Item
from moorage.core.ledger.reshaping.plan import Move, Place, Policy, ReshapePlan
from moorage.core.ledger.reshaping.shape import managed
from moorage.core.ledger.reshaping.violations import Violation, ViolationCode
from moorage.core.ledger.reshaping.wanted import Key, held_at, holders_by_place
from moorage.core.limits import MAX_INT


class Split(Struct):
    """All moves of one source.

    Attributes:
        source: the place that they leave.
        moves: in the order of the plan; never empty.
        assign: the merged assignments, by consumer and provider.
        placed: where the former units of each consumer are; those in `fitted` are not in it.
        fitted: the consumers for which a search chooses.
        violations: of this split alone; with any of them its amounts mean nothing.
    """

    source: Key
    moves: list[Move]
    assign: dict[ConsumerId, dict[ProviderId, int]] = {}
    placed: dict[ConsumerId, dict[Key, int]] = {}
    fitted: list[Item] = []
    violations: list[Violation] = []

    @property
    def policy(self) -> Policy:
        """The policy of its moves, which agree."""
        return self.moves[0].policy

    @property
    def targets(self) -> list[Key]:
        """The places that units go to, in the order of the plan."""
        return list(dict.fromkeys(key_of(move.target) for move in self.moves))

    @property
    def stays(self) -> bool:
        """Whether units stay on the source."""
        return any(self.source in amounts for amounts in self.placed.values())

    def refuse(
        self,
        code: ViolationCode,
        message: str,
        consumer: ConsumerId | None = None,
        amount: int | None = None,
    ) -> None:
        """Add a violation at the source."""
        self.violations.append(Violation(code, message, *self.source, consumer, amount))


def key_of(place: Place) -> Key:
    """Return the key of a place."""
    return place.provider, place.resource_class


def splits_of(facts: Facts, plan: ReshapePlan, author: AgentId | None = None) -> list[Split]:
    """Return the splits of a plan, in the order of the plan, with everybody's place.

    Moves of providers that do not exist are left out. `author` is the agent whose plan it is: what
    it manages itself may move, because what is desired of it follows; None: it is an operator's.
    """
    splits: dict[Key, Split] = {}
    created = {new.uuid for new in plan.create}
    for move in plan.moves:
        if all(
            place.provider in facts.providers or place.provider in created
            for place in (move.source, move.target)
        ):
            source = key_of(move.source)
            splits.setdefault(source, Split(source, [])).moves.append(move)
    holders = holders_by_place(facts)
    for split in splits.values():
        _check(facts, plan, split, author)
        _assign(split)
        _place(facts, plan, split, holders.get(split.source, ()))
    return list(splits.values())


def _check(facts: Facts, plan: ReshapePlan, split: Split, author: AgentId | None) -> None:
    uuid, name = split.source
    if name not in facts.inventories_of(uuid):
        message = f"Provider {uuid} has no inventory of {name} to move."
        split.refuse(ViolationCode.SOURCE_MISSING, message)
    for key in dict.fromkeys((split.source, *split.targets)):
        held = facts.inventories_of(key[0]).get(key[1])
        if held is not None and held.offered is not None:
            agent = facts.providers[key[0]].agent
            if agent is None or agent != author:
                split.violations.append(managed(key[0], agent or "", key[1]))
    if split.source in split.targets:
        message = f"A move of {name} has provider {uuid} as source and target."
        split.refuse(ViolationCode.SAME_PLACE, message)
    if len({move.policy for move in split.moves}) > 1:
        message = f"The moves of {name} from provider {uuid} have different policies."
        split.refuse(ViolationCode.POLICIES_DIFFER, message)
    if sum(move.amount is None for move in split.moves) > 1:
        message = f"Two moves of {name} from provider {uuid} take all that is left."
        split.refuse(ViolationCode.ALL_TWICE, message)
    for move in split.moves:
        if move.amount is not None and move.amount < 0:
            message = f"A move of {name} from provider {uuid} has a negative amount."
            split.refuse(ViolationCode.AMOUNT_INVALID, message, amount=move.amount)
    if Policy.FIT in {move.policy for move in split.moves} and name not in plan.fungible:
        message = f"Nothing can be chosen: the plan does not declare {name} fungible."
        split.refuse(ViolationCode.NOT_FUNGIBLE, message)


def _assign(split: Split) -> None:
    """Merge the assignments of all moves."""
    for move in split.moves:
        for consumer, amounts in sorted(move.assign.items()):
            merged = split.assign.setdefault(consumer, {})
            for uuid, amount in sorted(amounts.items()):
                if not 0 <= amount <= MAX_INT:
                    message = f"An amount of consumer {consumer} is not from 0 to {MAX_INT}."
                    split.refuse(ViolationCode.AMOUNT_INVALID, message, consumer, amount)
                elif merged.setdefault(uuid, amount) != amount:
                    message = (
                        f"Two moves assign different amounts of provider {uuid} to consumer"
                        f" {consumer}."
                    )
                    split.refuse(ViolationCode.ASSIGN_CONTRADICTS, message, consumer, amount)


def _place(facts: Facts, plan: ReshapePlan, split: Split, holders: Sequence[ConsumerId]) -> None:
    uuid, name = split.source
    places = _places_by_provider(split)
    targets = tuple(split.targets)
    for consumer in sorted({*holders, *split.assign}):
        amount = held_at(facts, consumer, split.source)
        if consumer in split.assign:
            split.placed[consumer] = _assigned(facts, plan, split, consumer, amount, places)
        elif not amount:
            continue
        elif uuid in plan.vacate.get(consumer, ()):
            split.placed[consumer] = {}
        elif consumer in plan.stay or split.policy is Policy.ONLY_IF_UNUSED:
            split.placed[consumer] = {split.source: amount}
        elif split.policy is Policy.FIT:
            split.fitted.append(
                Item(consumer, split.source, amount, _left(plan, consumer, targets))
            )
        elif consumer in plan.release:
            split.placed[consumer] = {}
        else:
            message = (
                f"Consumer {consumer} has {amount} of {name} on provider {uuid}, and the plan does"
                " not say where it goes."
            )
            split.refuse(ViolationCode.UNASSIGNED, message, consumer, amount)


def _left(plan: ReshapePlan, consumer: ConsumerId, targets: tuple[Key, ...]) -> tuple[Key, ...]:
    """Return the targets that a consumer does not vacate."""
    vacated = plan.vacate.get(consumer)
    return targets if not vacated else tuple(key for key in targets if key[0] not in vacated)


def _places_by_provider(split: Split) -> dict[ProviderId, list[Key]]:
    """Return which places a provider can stand for in `assign`."""
    places: dict[ProviderId, list[Key]] = {}
    for target in split.targets:
        places.setdefault(target[0], []).append(target)
    places.setdefault(split.source[0], [split.source])
    return places


def _assigned(
    facts: Facts,
    plan: ReshapePlan,
    split: Split,
    consumer: ConsumerId,
    amount: int,
    places: dict[ProviderId, list[Key]],
) -> dict[Key, int]:
    """Return the places of a consumer that `assign` names; its present one if that is refused."""
    kept = {split.source: amount} if amount else {}
    if consumer not in facts.consumers:
        message = f"Consumer {consumer} has no allocations, so nothing of it can be assigned."
        split.refuse(ViolationCode.CONSUMER_UNKNOWN, message, consumer)
        return kept
    wrong = list(_misnamed(split, consumer, places))
    wrong += _vacated(plan, split, consumer)
    split.violations += wrong
    given = sum(split.assign[consumer].values())
    accepted = consumer in plan.accept_drift or (consumer in plan.release and given < amount)
    if given != amount and not accepted:
        message = (
            f"{given} of {split.source[1]} are assigned to consumer {consumer}, which has {amount}"
            f" on provider {split.source[0]}."
        )
        split.refuse(ViolationCode.DRIFT, message, consumer, amount)
        return kept
    if wrong:
        return kept
    return {places[uuid][0]: units for uuid, units in split.assign[consumer].items() if units > 0}


def _vacated(plan: ReshapePlan, split: Split, consumer: ConsumerId) -> Iterator[Violation]:
    """Yield each provider that `assign` gives units of to a consumer, which vacates it."""
    for uuid in sorted(plan.vacate.get(consumer, frozenset()) & split.assign[consumer].keys()):
        if amount := split.assign[consumer][uuid]:
            message = f"Consumer {consumer} is assigned units of provider {uuid}, and vacates it."
            code = ViolationCode.ASSIGN_CONTRADICTS
            yield Violation(code, message, uuid, split.source[1], consumer, amount)


def _misnamed(
    split: Split, consumer: ConsumerId, places: dict[ProviderId, list[Key]]
) -> Iterator[Violation]:
    for uuid, amount in sorted(split.assign[consumer].items()):
        meant = len(places.get(uuid, ()))
        if meant == 0:
            code = ViolationCode.ASSIGN_ELSEWHERE
            message = f"Provider {uuid} is neither a target of these moves nor their source."
        elif meant > 1:
            code = ViolationCode.TARGET_AMBIGUOUS
            message = f"Provider {uuid} has two targets of these moves: assign cannot name one."
        else:
            continue
        yield Violation(code, message, uuid, split.source[1], consumer, amount)
