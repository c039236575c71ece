"""Random trees with random plans: most plans are sound, some are spoilt."""

import random
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from moorage.core.ids import ConsumerId, ProviderId
from moorage.core.ledger import draining
from moorage.core.ledger.facts import Facts
from moorage.core.ledger.model import Inventory
from moorage.core.ledger.reshaping.plan import (
    Figures,
    Move,
    NewProvider,
    Place,
    Policy,
    ReshapePlan,
)
from tests.core.ledger.build import (
    add_class,
    add_provider,
    add_tags,
    consumer_id,
    facts,
    provider_id,
)
from tests.core.ledger.reshaping.model import FIGURES, Plan, State, over
from tests.core.ledger.reshaping.worlds import claim, hold

NAMES = ["VCPU", "CUSTOM_VGPU", "CUSTOM_VF"]
ODD = [-1, 0, 2**31 - 1, 2**31, 10**400]
TRAITS = ["HW_CPU_X86_AVX2", "STORAGE_DISK_SSD"]


def draw_state(draw: random.Random) -> State:
    """Return one or two small trees with consumers, some of them over capacity."""
    providers: dict[str, Any] = {}
    for n in range(1, draw.randint(2, 5)):
        parent = draw.choice([*providers, None]) if n > 1 and draw.random() < 0.9 else None
        providers[provider_id(n)] = {"name": f"name-{n}", "parent": parent}
    inventories: dict[Any, list[Any]] = {}
    for uuid in providers:
        for name in NAMES:
            if draw.random() < 0.6:
                total = draw.randint(1, 12)
                reserved = draw.choice([0, 0, 0, min(1, total), total])
                ratio = draw.choice([1.0, 1.0, 1.0, 1.5, 0.5, 2.0])
                sizes = draw.choice([(1, 2**31 - 1, 1)] * 4 + [(2, 2**31 - 1, 2), (1, 4, 1)])
                inventories[uuid, name] = [total, reserved, *sizes, ratio]
    state = {"providers": providers, "inventories": inventories, "traits": {}, "consumers": {}}
    for uuid in providers:
        if draw.random() < 0.3:
            state["traits"][uuid] = set(draw.sample(TRAITS, draw.randint(1, 2)))
    for n in range(1, draw.randint(1, 6)):
        held: dict[Any, int] = {}
        for key in draw.sample(sorted(inventories), min(len(inventories), draw.randint(1, 3))):
            total, _, smallest, largest, step, _ = inventories[key]
            amount = draw.choice([step, step, 2 * step, 3 * step])
            fits = over(state, key) + amount <= 0 and smallest <= amount <= largest
            if fits or draw.random() < 0.1:
                held[key] = amount
        if held:
            state["consumers"][consumer_id(n)] = held
    return state


def draw_plan(draw: random.Random, state: State) -> Plan:
    """Return a plan for a state; about half of them can be committed."""
    plan: Plan = {
        "create": [],
        "parents": {},
        "rename": {},
        "moves": [],
        "inventories": {},
        "traits": {},
        "drain": {},
        "delete": [],
        "stay": [],
        "release": [],
        "accept_drift": [],
        "fungible": [],
        "cross_tree": draw.random() < 0.8,
    }
    present = sorted(state["providers"])
    for n in range(draw.choice([0, 1, 2, 3])):
        parent = draw.choice([*present, *(new[0] for new in plan["create"]), None])
        plan["create"].append((provider_id(50 + n), f"new-{n}", parent))
    draw.shuffle(plan["create"])
    sources = sorted(state["inventories"])
    for source in draw.sample(sources, min(len(sources), draw.choice([0, 1, 1, 1, 2]))):
        draw_split(draw, state, plan, source)
    if draw.random() < 0.5:
        draw_rest(draw, state, plan)
    if draw.random() < 0.3:
        spoil(draw, state, plan)
    return plan


def draw_split(draw: random.Random, state: State, plan: Plan, source: Any) -> None:
    """Add the moves of one source; everybody there is covered, most of the time."""
    places = [uuid for uuid, _, _ in plan["create"]] * 3 + sorted(state["providers"])
    name = source[1] if draw.random() < 0.8 else draw.choice([*NAMES, "MEMORY_MB"])
    targets = [(uuid, name) for uuid in dict.fromkeys(draw.sample(places, min(len(places), 3)))]
    targets = [target for target in targets if target != source][: draw.randint(1, 3)]
    if not targets:
        return
    policy = draw.choice(["explicit", "explicit", "fit", "only_if_unused"])
    if policy == "fit" and draw.random() < 0.95:
        plan["fungible"].append(source[1])
    total = state["inventories"][source][0]
    assign: dict[str, dict[str, int]] = {}
    taken = dict.fromkeys(targets, 0)
    for consumer, held in state["consumers"].items():
        if source in held and draw.random() < (0.2 if policy == "fit" else 0.9):
            draw_place(draw, plan, consumer, held[source], source, taken, assign)
    moves = []
    left = total
    for number, target in enumerate(targets):
        most = max(left - sum(list(taken.values())[number + 1 :]), 0)
        amount = draw.randint(min(taken[target], most), most)
        last = number == len(targets) - 1
        if last and draw.random() < 0.6:
            amount = None
        left -= amount or 0
        own = {c: {p: n for p, n in to.items() if p == target[0]} for c, to in assign.items()}
        own = {c: to for c, to in own.items() if to}
        given = assign if number == 0 or draw.random() < 0.2 else own
        if amount is None or amount > 0 or draw.random() < 0.05:
            moves.append(
                {"from": source, "to": target, "amount": amount, "assign": given, "policy": policy}
            )
    if moves:
        moves[0]["assign"] = assign
    plan["moves"] += moves


def draw_place(
    draw: random.Random,
    plan: Plan,
    consumer: str,
    amount: int,
    source: Any,
    taken: dict[Any, int],
    assign: dict[str, dict[str, int]],
) -> None:
    """Let one consumer stay or be released, or assign its units."""
    way = draw.random()
    if way < 0.2:
        plan["stay"].append(consumer)
    elif way < 0.27:
        plan["release"].append(consumer)
    else:
        given: dict[str, int] = {}
        seen, first = amount, next(iter(taken))
        if way > 0.92:
            seen = max(amount + draw.choice([-1, 1, 2]), 0)
            plan[draw.choice(["accept_drift", "accept_drift", "release"])].append(consumer)
        for _ in range(seen):
            target = draw.choice([*taken, *taken, source]) if draw.random() < 0.3 else first
            given[target[0]] = given.get(target[0], 0) + 1
            if target in taken:
                taken[target] += 1
        assign[consumer] = given


def draw_rest(draw: random.Random, state: State, plan: Plan) -> None:
    """Add changes of names, parents, traits, figures, and deletions."""
    present = sorted(state["providers"])
    every = present + [uuid for uuid, _, _ in plan["create"]]
    if draw.random() < 0.3:
        plan["parents"][draw.choice(present)] = draw.choice([*every, None])
    if draw.random() < 0.3:
        plan["rename"][draw.choice(present)] = draw.choice(["other", "name-1", "name-2"])
    if draw.random() < 0.3:
        plan["traits"][draw.choice(every)] = draw.sample(TRAITS, draw.randint(0, 2))
    if draw.random() < 0.3:
        plan["drain"][draw.choice(every)] = draw.choice(["", "broken"])
    if draw.random() < 0.3:
        uuid, name = draw.choice(every), draw.choice(NAMES)
        given = draw.choice(
            [
                {"allocation_ratio": 2.0},
                {"max_unit": 3},
                {"reserved": 0},
                {"total": draw.randint(1, 12), "step_size": 1},
                {"total": draw.randint(1, 12)},
                None,
            ]
        )
        plan["inventories"][uuid] = {name: given}
        if given is None and draw.random() < 0.5:
            users = [c for c, held in state["consumers"].items() if (uuid, name) in held]
            plan["release"] += users
    if draw.random() < 0.3:
        uuid = draw.choice(present)
        plan["delete"].append(uuid)
        if draw.random() < 0.5:
            plan["release"] += [
                c for c, held in state["consumers"].items() if any(key[0] == uuid for key in held)
            ]


def spoil(draw: random.Random, state: State, plan: Plan) -> None:
    """Do one thing to a plan that may be an error."""
    moves = plan["moves"]
    spoilt = draw.randrange(15)
    if spoilt == 0:
        plan["create"].append((draw.choice(sorted(state["providers"])), "again", None))
    elif spoilt == 1:
        plan["traits"][provider_id(99)] = []
    elif spoilt == 2:
        plan["traits"][provider_id(1)] = ["CUSTOM_NO"]
    elif spoilt == 3 and moves:
        moves[0]["amount"] = draw.choice([0, -1, 40])
    elif spoilt == 4 and moves:
        moves[0]["to"] = (moves[0]["to"][0], "CUSTOM_NO")
    elif spoilt == 5 and moves:
        moves[0]["assign"] = {**moves[0]["assign"], consumer_id(9): {moves[0]["to"][0]: 1}}
    elif spoilt == 6 and moves:
        moves.append({**moves[0], "policy": draw.choice(["explicit", "only_if_unused", "fit"])})
    elif spoilt == 8 and moves:
        moves[0]["assign"] = {c: dict(to) for c, to in moves[0]["assign"].items()}
        moves.append(deepcopy(moves[0]))
        for given in moves[-1]["assign"].values():
            given.update({uuid: n + 1 for uuid, n in given.items()})
    elif spoilt == 9 and moves:
        moves[-1]["amount"] = None
        moves.append({**moves[-1], "assign": {}})
    elif spoilt == 10 and moves:
        other = {"to": (moves[0]["to"][0], "MEMORY_MB"), "amount": 1}
        moves.append({**moves[0], **other})
        if moves[0]["amount"]:
            moves[0]["amount"] -= 1
    elif spoilt == 11 and state["inventories"]:
        uuid, name = draw.choice(sorted(state["inventories"]))
        figure = draw.choice(FIGURES)
        odd = draw.choice([1e-320, 1e-9, 1e308] if figure == "allocation_ratio" else ODD)
        plan["inventories"].setdefault(uuid, {})[name] = {figure: odd}
    elif spoilt == 12 and moves:
        moves[0]["amount"] = draw.choice(ODD)
    elif spoilt == 13 and moves:
        moves[0]["assign"] = {c: {moves[0]["to"][0]: draw.choice(ODD)} for c in state["consumers"]}
        plan["accept_drift"] += list(state["consumers"])
    elif spoilt == 14:
        plan[draw.choice(["stay", "release", "accept_drift"])].append(consumer_id(9))
    elif spoilt == 7 and moves:
        moves[0]["assign"] = {c: {provider_id(1): 1} for c in state["consumers"]}
    else:
        plan["create"].append((provider_id(60), draw.choice(["name-1", "", "x" * 201]), None))


def facts_of(state: State, drained: Sequence[str] = ()) -> Facts:
    """Return a state as the store loads it."""
    known = facts()
    for name in ("CUSTOM_VGPU", "CUSTOM_VF"):
        add_class(known, name)
    for uuid, one in state["providers"].items():
        add_provider(known, ProviderId(uuid), name=one["name"], parent=one["parent"])
    for (uuid, name), figures in state["inventories"].items():
        known.inventories.setdefault(uuid, {})[name] = Inventory(*figures)
    for uuid, traits in state["traits"].items():
        add_tags(known, uuid, traits)
    for consumer, held in state["consumers"].items():
        claim(known, ConsumerId(consumer), nested(held))
    hold(known)
    for uuid in drained:
        known.apply(draining.drain(known, ProviderId(uuid), "by an operator"))
    return known


def state_of(known: Facts) -> State:
    """Return facts as a state of the model."""
    return {
        "providers": {
            uuid: {"name": one.name, "parent": one.parent} for uuid, one in known.providers.items()
        },
        "inventories": {
            (uuid, name): [getattr(one, figure) for figure in FIGURES]
            for uuid, held in known.inventories.items()
            for name, one in held.items()
        },
        "traits": {uuid: set(tags.traits) for uuid, tags in known.tags.items() if tags.traits},
        "consumers": {
            consumer: {
                (uuid, name): amount
                for uuid, amounts in one.allocations.items()
                for name, amount in amounts.items()
            }
            for consumer, one in known.consumers.items()
        },
    }


def nested(held: dict[Any, int]) -> dict[ProviderId, dict[str, int]]:
    """Return amounts by provider, then by class."""
    found: dict[ProviderId, dict[str, int]] = {}
    for (uuid, name), amount in held.items():
        found.setdefault(ProviderId(uuid), {})[name] = amount
    return found


def document(plan: Plan) -> ReshapePlan:
    """Return a plan as the engine reads it."""
    return ReshapePlan(
        create=tuple(NewProvider(*new) for new in plan["create"]),
        parents=plan["parents"],
        rename=plan["rename"],
        moves=tuple(
            Move(
                Place(*move["from"]),
                Place(*move["to"]),
                move["amount"],
                move["assign"],
                Policy(move["policy"]),
            )
            for move in plan["moves"]
        ),
        inventories={
            uuid: {
                name: None if given is None else Figures(**given) for name, given in classes.items()
            }
            for uuid, classes in plan["inventories"].items()
        },
        traits={uuid: frozenset(traits) for uuid, traits in plan["traits"].items()},
        drain=plan["drain"],
        delete=frozenset(plan["delete"]),
        stay=frozenset(plan["stay"]),
        release=frozenset(plan["release"]),
        accept_drift=frozenset(plan["accept_drift"]),
        fungible=frozenset(plan["fungible"]),
        cross_tree=plan["cross_tree"],
    )
