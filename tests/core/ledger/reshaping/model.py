"""A naive model of reshape plans: plain dicts, nothing of the engine, every rule as it is written.

A state has `providers` (name and parent), `inventories` (six figures by provider and class),
`traits` and `consumers` (amounts by provider and class). A plan is the document as JSON would have
it, with places as pairs.
"""

from collections import defaultdict
from collections.abc import Iterator
from copy import deepcopy
from itertools import product
from typing import Any

State = dict[str, Any]
Plan = dict[str, Any]
TOTAL, RESERVED, MIN, MAX, STEP, RATIO = range(6)
FIGURES = ["total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio"]
CLASSES = {"VCPU", "MEMORY_MB", "DISK_GB", "CUSTOM_VGPU", "CUSTOM_VF"}


class Refused(Exception):
    """The plan is refused; the text says by which rule."""


def demand(holds: bool, rule: str) -> None:
    """Refuse the plan unless this holds."""
    if not holds:
        raise Refused(rule)


def outcomes(before: State, plan: Plan) -> tuple[list[State], set[str]]:
    """Return all states to which a plan may lead, and the rules that refuse the other choices."""
    states, rules = [], set()
    for choice in choices(before, plan):
        try:
            states.append(outcome(before, plan, choice))
        except Refused as refusal:
            rules.add(str(refusal))
    return states, rules


def choices(before: State, plan: Plan) -> Iterator[dict[Any, Any]]:
    """Yield every choice of one target for each consumer and source with the policy fit."""
    open_ones = []
    for source, moves in grouped(plan).items():
        targets = list(dict.fromkeys(move["to"] for move in moves))
        named = {consumer for move in moves for consumer in move["assign"]}
        for consumer, held in sorted(before["consumers"].items()):
            fits = moves[0]["policy"] == "fit" and source in held
            if fits and consumer not in named and consumer not in plan["stay"]:
                open_ones.append([((consumer, source), target) for target in targets])
    for chosen in product(*open_ones):
        yield dict(chosen)


def grouped(plan: Plan) -> dict[Any, list[Any]]:
    """Return the moves by source."""
    found: dict[Any, list[Any]] = {}
    for move in plan["moves"]:
        found.setdefault(move["from"], []).append(move)
    return found


def outcome(before: State, plan: Plan, choice: dict[Any, Any]) -> State:
    """Return the state after the plan; raises Refused."""
    after = deepcopy(before)
    shape(before, plan, after)
    for part in ("stay", "release", "accept_drift"):
        demand(set(plan[part]) <= before["consumers"].keys(), "unknown consumer")
    placed = {source: split(before, plan, source, choice) for source in grouped(plan)}
    residual, spared, carried = stock(before, plan, after, placed)
    demand(residual.isdisjoint(choice.values()), "a search found what is closed")
    allocate(before, plan, after, placed)
    room(before, after, residual, spared, carried)
    for uuid in [uuid for uuid, traits in after["traits"].items() if not traits]:
        del after["traits"][uuid]
    for uuid in plan["delete"]:
        after["traits"].pop(uuid, None)
    conserve(before, plan, after)
    return after


def shape(before: State, plan: Plan, after: State) -> None:
    """Change names, parents and traits, and refuse trees that cannot be."""
    providers = after["providers"]
    for uuid, name, parent in plan["create"]:
        demand(uuid not in providers, "exists")
        providers[uuid] = {"name": name, "parent": parent}
    demand(named(plan) <= providers.keys(), "unknown provider")
    changed = {
        *plan["parents"],
        *plan["rename"],
        *plan["traits"],
        *plan["drain"],
        *(m["to"][0] for m in plan["moves"]),
    }
    changed |= {uuid for uuid, given in plan["inventories"].items() if any(given.values())}
    demand(changed.isdisjoint(plan["delete"]), "deleted and changed")
    old = {root(before["providers"], uuid) for uuid in named(plan) & before["providers"].keys()}
    for uuid, parent in plan["parents"].items():
        providers[uuid]["parent"] = parent
    for uuid, name in plan["rename"].items():
        providers[uuid]["name"] = name
    for uuid in plan["delete"]:
        del providers[uuid]
    names = [one["name"] for one in providers.values()]
    demand(len(names) == len(set(names)), "name taken")
    demand(all(1 <= len(name) <= 200 for name in names), "name invalid")
    for one in providers.values():
        demand(one["parent"] is None or one["parent"] in providers, "parent gone")
    new = {root(providers, uuid) for uuid in named(plan) & providers.keys()}
    demand(plan["cross_tree"] or len(old) < 2 or len(new) < 2, "several trees")
    for uuid, traits in plan["traits"].items():
        known = {"HW_CPU_X86_AVX2", "STORAGE_DISK_SSD", *before["traits"].get(uuid, ())}
        demand(set(traits) <= known, "unknown trait")
        after["traits"][uuid] = set(traits)


def named(plan: Plan) -> set[str]:
    """Return all providers of a plan."""
    found = {uuid for uuid, _, _ in plan["create"]} | set(plan["delete"])
    found |= {parent for _, _, parent in plan["create"] if parent}
    found |= {parent for parent in plan["parents"].values() if parent}
    for part in ("parents", "rename", "inventories", "traits", "drain"):
        found |= set(plan[part])
    return found.union(*({m["from"][0], m["to"][0]} for m in plan["moves"]))


def root(providers: dict[str, Any], uuid: str) -> str:
    """Return the top of a tree; raises Refused for a loop."""
    for _ in range(len(providers) + 1):
        above = providers[uuid]["parent"]
        if above is None:
            return uuid
        uuid = above
    raise Refused("loop")


def split(before: State, plan: Plan, source: Any, choice: dict[Any, Any]) -> dict[str, Any]:
    """Return where each consumer's units at a source go."""
    moves = grouped(plan)[source]
    targets = list(dict.fromkeys(move["to"] for move in moves))
    demand(source in before["inventories"], "no source")
    demand(source not in targets, "same place")
    demand(len({move["policy"] for move in moves}) == 1, "policies differ")
    demand(sum(move["amount"] is None for move in moves) <= 1, "all twice")
    demand(all(move["amount"] is None or move["amount"] >= 0 for move in moves), "no units")
    policy = moves[0]["policy"]
    demand(policy != "fit" or source[1] in plan["fungible"], "not fungible")
    assigned: dict[str, dict[str, int]] = {}
    for move in moves:
        for consumer, amounts in move["assign"].items():
            for uuid, amount in amounts.items():
                merged = assigned.setdefault(consumer, {})
                demand(merged.setdefault(uuid, amount) == amount, "contradiction")
            assigned.setdefault(consumer, {})
    found: dict[str, Any] = {}
    for consumer in {*before["consumers"], *assigned}:
        demand(consumer in before["consumers"], "unknown consumer")
        amount = before["consumers"][consumer].get(source, 0)
        released = consumer in plan["release"]
        if consumer in assigned:
            given = sum(assigned[consumer].values())
            may = consumer in plan["accept_drift"] or (released and given < amount)
            demand(given == amount or may, "drift")
            found[consumer] = located(source, targets, assigned[consumer])
        elif not amount:
            continue
        elif consumer in plan["stay"] or policy == "only_if_unused":
            found[consumer] = {source: amount}
        elif policy == "fit":
            found[consumer] = {choice[consumer, source]: amount}
        else:
            demand(released, "unassigned")
            found[consumer] = {}
    return found


def located(source: Any, targets: list[Any], amounts: dict[str, int]) -> dict[Any, int]:
    """Return the places that an assignment means."""
    found = {}
    for uuid, amount in amounts.items():
        demand(0 <= amount < 2**31, "amount")
        meant = [target for target in targets if target[0] == uuid]
        if not meant and uuid == source[0]:
            meant = [source]
        demand(len(meant) == 1, "no target, or two")
        if amount:
            found[meant[0]] = amount
    return found


def stock(
    before: State, plan: Plan, after: State, placed: dict[Any, Any]
) -> tuple[set[Any], set[Any], dict[Any, float]]:
    """Change inventories; return residual sources, those of free units, and excess that moves."""
    totals = {key: figures[TOTAL] for key, figures in before["inventories"].items()}
    change: dict[Any, int] = defaultdict(int)
    pattern: dict[Any, Any] = {}
    residual, spared = set(), set()
    carried: dict[Any, float] = defaultdict(float)
    for source, moves in grouped(plan).items():
        figures = with_given(before["inventories"][source], plan, source)
        given = plan["inventories"].get(source[0], {}).get(source[1]) or {}
        whole = figures[RESERVED] == before["inventories"][source][TOTAL]
        free_only = moves[0]["policy"] == "only_if_unused"
        staying = sum(places.get(source, 0) for places in placed[source].values())
        kept = 0
        while kept < totals[source] and kept * figures[RATIO] < staying:
            kept += 1
        if "reserved" in given and (staying or free_only):
            kept += max(given["reserved"], 0)
        elif free_only and not whole:
            kept += figures[RESERVED]
        (spared if free_only else residual if staying else set()).add(source)
        fixed = sum(move["amount"] or 0 for move in moves)
        demand(fixed <= totals[source], "source short")
        rest = max(totals[source] - fixed - kept, 0)
        for move in moves:
            amount = rest if move["amount"] is None else move["amount"]
            change[source] -= amount
            change[move["to"]] += amount
            pattern.setdefault(move["to"], source)
        open_end = any(move["amount"] is None for move in moves)
        whole = fixed + (rest if open_end else 0) == totals[source]
        if whole and len({move["to"] for move in moves}) == 1:
            carried[moves[0]["to"]] += max(over(before, source), 0)
    derive(before, plan, after, change, pattern, residual)
    give(before, plan, after, change)
    new = after["inventories"]
    closed = {key for key in residual if key not in new or new[key][RESERVED] == new[key][TOTAL]}
    return closed, spared, carried


def derive(
    before: State,
    plan: Plan,
    after: State,
    change: dict[Any, int],
    pattern: dict[Any, Any],
    residual: set[Any],
) -> None:
    """Set the figures of the places that take part in moves."""
    totals = {key: figures[TOTAL] for key, figures in before["inventories"].items()}
    new = after["inventories"]
    for key, delta in change.items():
        total = totals.get(key, 0) + delta
        given = plan["inventories"].get(key[0], {}).get(key[1], {})
        stated = 0 if given is None else given.get("total", total)
        demand(stated == total, "total contradicts")
        if total == 0:
            new.pop(key, None)
            continue
        if key in before["inventories"]:
            figures = list(before["inventories"][key])
            if key in residual or figures[RESERVED] == figures[TOTAL]:
                figures[RESERVED] = total
        else:
            figures = list(before["inventories"][pattern[key]])
            figures[RESERVED] = 0
        figures[TOTAL] = total
        new[key] = with_given(figures, plan, key)


def give(before: State, plan: Plan, after: State, change: dict[Any, int]) -> None:
    """Set the figures of other places, and refuse odd ones."""
    new = after["inventories"]
    for uuid, classes in plan["inventories"].items():
        for name, given in classes.items():
            key = (uuid, name)
            if key in change or uuid in plan["delete"]:
                continue
            if given is None:
                new.pop(key, None)
            else:
                demand(key in new or "total" in given, "no total")
                new[key] = with_given(new.get(key, [0, 0, 1, 2**31 - 1, 1, 1.0]), plan, key)
    for key in [key for key in new if key[0] in plan["delete"]]:
        del new[key]
    for key, figures in new.items():
        demand(key[1] in CLASSES, "unknown class")
        if figures != before["inventories"].get(key):
            demand(all(1 <= figures[n] < 2**31 for n in (TOTAL, MIN, MAX, STEP)), "figures")
            demand(0 <= figures[RESERVED] < 2**31 and abs(figures[RATIO]) < 3.4e38, "figures")
            demand((figures[TOTAL] - figures[RESERVED]) * figures[RATIO] > -1, "reserved")


def with_given(figures: list[Any], plan: Plan, key: Any) -> list[Any]:
    """Return figures with those that the plan gives."""
    given = plan["inventories"].get(key[0], {}).get(key[1]) or {}
    return [given.get(name, figures[n]) for n, name in enumerate(FIGURES)]


def allocate(before: State, plan: Plan, after: State, placed: dict[Any, Any]) -> None:
    """Change allocations."""
    for source, consumers in placed.items():
        for consumer, places in consumers.items():
            held = after["consumers"][consumer]
            was = before["consumers"][consumer].get(source, 0)
            held[source] = held.get(source, 0) - was
            for key, amount in places.items():
                held[key] = held.get(key, 0) + amount
    gone = before["inventories"].keys() - after["inventories"].keys() - placed.keys()
    for consumer in set(plan["release"]):
        for key in gone & after["consumers"].get(consumer, {}).keys():
            after["consumers"][consumer][key] -= before["consumers"][consumer].get(key, 0)
    for consumer, held in list(after["consumers"].items()):
        after["consumers"][consumer] = {key: n for key, n in held.items() if n}
        if not after["consumers"][consumer]:
            del after["consumers"][consumer]


def used(state: State, key: Any) -> int:
    """Return what all consumers have at a place."""
    return sum(held.get(key, 0) for held in state["consumers"].values())


def over(state: State, key: Any) -> float:
    """Return what is used at a place beyond its capacity; negative: room."""
    figures = state["inventories"].get(key)
    if figures is None:
        return used(state, key)
    return used(state, key) - (figures[TOTAL] - figures[RESERVED]) * figures[RATIO]


def room(
    before: State, after: State, residual: set[Any], spared: set[Any], carried: dict[Any, float]
) -> None:
    """Refuse what does not fit, anywhere."""
    stock = after["inventories"]
    for consumer, held in after["consumers"].items():
        was = before["consumers"][consumer]
        for key, amount in held.items():
            demand(key in stock, "no inventory")
            figures = stock[key]
            if amount != was.get(key, 0):
                sizes = figures[MIN] <= amount <= figures[MAX] and amount % figures[STEP] == 0
                demand(sizes, "units")
    for key in stock:
        if key in residual:
            short = used(after, key) - stock[key][TOTAL] * stock[key][RATIO]
            figures = before["inventories"][key]
            was_short = used(before, key) - figures[TOTAL] * figures[RATIO]
            demand(short <= max(was_short, 0), "residual short")
        else:
            allowed = max(over(before, key) if key in before["inventories"] else 0, carried[key], 0)
            demand(not used(after, key) or over(after, key) <= allowed, "capacity")


def conserve(before: State, plan: Plan, after: State) -> None:
    """Refuse a plan by which a consumer gains or loses units, classes renamed."""
    edges = [(move["from"][1], move["to"][1]) for move in plan["moves"]]
    groups = {name: {name} for name in {*CLASSES, *(name for edge in edges for name in edge)}}
    for one, two in edges:
        joined = groups[one] | groups[two]
        for name in joined:
            groups[name] = joined
    for consumer, was in before["consumers"].items():
        now = after["consumers"].get(consumer, {})
        drifted = consumer in plan["accept_drift"] and any(
            consumer in move["assign"] for move in plan["moves"]
        )
        for group in groups.values():
            lost = sum(n for key, n in was.items() if key[1] in group)
            lost -= sum(n for key, n in now.items() if key[1] in group)
            allowed = drifted or (lost > 0 and consumer in plan["release"])
            demand(lost == 0 or allowed, "not conserved")
