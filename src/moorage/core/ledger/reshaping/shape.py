"""The trees as they will be: names, parents, roots, and what is withheld below whom."""

from collections.abc import Iterator

from msgspec.structs import replace

from moorage.core.clock import Instant
from moorage.core.ids import AgentId, ProviderId
from moorage.core.ledger.draining import is_drained
from moorage.core.ledger.facts import Facts
from moorage.core.ledger.model import Provider, Withheld
from moorage.core.ledger.providers import after_creation
from moorage.core.ledger.reshaping.violations import Violation, ViolationCode
from moorage.core.ledger.reshaping.wanted import Standing, Wanted
from moorage.core.limits import NAME_LENGTH_MAX, TREE_SIZE_MAX


class Forest:
    """All trees after a change. The trees of the wanted providers must be loaded."""

    def __init__(self, facts: Facts, wanted: Wanted) -> None:
        self._facts = facts
        self._wanted = wanted.providers
        self._drained = wanted.drained
        self._roots: dict[ProviderId, ProviderId | None] = {}
        self.looped: set[ProviderId] = set()
        """Members of loops that `root_of` has found."""

    def exists(self, uuid: ProviderId) -> bool:
        """Will there be such a provider?"""
        if uuid in self._wanted:
            return self._wanted[uuid] is not None
        return uuid in self._facts.providers

    def standing_of(self, uuid: ProviderId) -> Standing | None:
        """Return the future name and parent; None: there is no such provider."""
        if uuid in self._wanted:
            return self._wanted[uuid]
        return standing_of(self._facts, uuid)

    def root_of(self, uuid: ProviderId) -> ProviderId | None:
        """Return the future root; None: the way up ends in a loop or at a missing provider."""
        line: dict[ProviderId, None] = {}
        at: ProviderId | None = uuid
        root = None
        while at is not None:
            if at in self._roots:
                root = self._roots[at]
                break
            if at in line:
                members = list(line)
                self.looped.update(members[members.index(at) :])
                root = None
                break
            standing = self.standing_of(at)
            if standing is None:
                root = None
                break
            line[at] = None
            root, at = at, standing.parent
        self._roots.update(dict.fromkeys(line, root))
        return root

    def elsewhere(self) -> list[ProviderId]:
        """Return providers that are created, drained or get another parent, and all below them.

        Parents come first; what is in a loop is omitted.
        """
        tops = {
            uuid
            for uuid, standing in self._wanted.items()
            if standing is not None and _moves(self._facts, uuid, standing)
        }
        tops.update(uuid for uuid in self._drained if self.exists(uuid))
        if not tops:
            return []
        below = self._children()
        found = list(tops)
        known = set(tops)
        for uuid in found:
            lower = [child for child in below.get(uuid, ()) if child not in known]
            known.update(lower)
            found += lower
        ordered = sorted(uuid for uuid in known if self._parent(uuid) not in known)
        for uuid in ordered:
            ordered += below.get(uuid, ())
        return ordered

    def _children(self) -> dict[ProviderId, list[ProviderId]]:
        below: dict[ProviderId, list[ProviderId]] = {}
        for uuid in sorted(self._facts.providers.keys() | self._wanted.keys()):
            parent = self._parent(uuid)
            if parent is not None:
                below.setdefault(parent, []).append(uuid)
        return below

    def _parent(self, uuid: ProviderId) -> ProviderId | None:
        standing = self.standing_of(uuid)
        return None if standing is None else standing.parent


def standing_of(facts: Facts, uuid: ProviderId) -> Standing | None:
    """Return the present name and parent; None: there is no such provider."""
    provider = facts.providers.get(uuid)
    return None if provider is None else Standing(provider.name, provider.parent)


def judged(facts: Facts, wanted: Wanted, forest: Forest) -> Iterator[Violation]:
    """Yield what forbids the names and trees of the final state."""
    yield from _names(facts, wanted)
    yield from _parents(facts, wanted, forest)
    for uuid, standing in sorted(wanted.providers.items()):
        if standing is not None and forest.root_of(uuid) is None and uuid in forest.looped:
            yield Violation(
                ViolationCode.TREE_LOOP, f"Provider {uuid} would be below itself.", provider=uuid
            )
    many = len(forest.elsewhere())
    if many > TREE_SIZE_MAX:
        message = f"{many} providers would change their place; at most {TREE_SIZE_MAX} can at once."
        yield Violation(ViolationCode.TOO_LARGE, message, amount=many)
    yield from _spoken_for(facts, wanted)
    for uuid, standing in sorted(wanted.providers.items()):
        provider = facts.providers.get(uuid)
        if standing is None and provider is not None and provider.agent is not None:
            yield managed(uuid, provider.agent)


def _spoken_for(facts: Facts, wanted: Wanted) -> Iterator[Violation]:
    """Yield each provider whose drain changes although agents manage it, or what is below it."""
    if not wanted.drained:
        return
    spoken: dict[ProviderId, AgentId] = {}
    seen: set[ProviderId] = set()
    for provider in sorted(facts.providers.values(), key=lambda one: (one.agent or "", one.uuid)):
        at: ProviderId | None = provider.uuid if provider.agent is not None else None
        while at is not None and at not in seen:  # who is above that one is known already
            seen.add(at)
            if at in wanted.drained and provider.agent is not None:
                spoken[at] = provider.agent
            at = facts.providers[at].parent if at in facts.providers else None
    for uuid, agent in sorted(spoken.items()):
        yield managed(uuid, agent)


def unknown(uuid: ProviderId) -> Violation:
    """Return the violation for a provider that does not exist."""
    message = f"Provider {uuid} does not exist."
    return Violation(ViolationCode.PROVIDER_UNKNOWN, message, provider=uuid)


def managed(uuid: ProviderId, agent: str, name: str | None = None) -> Violation:
    """Return the violation for what an agent manages: a provider, or one class of it."""
    what = f"provider {uuid}" if name is None else f"{name} of provider {uuid}"
    message = f"Agent {agent} manages {what}: let the agent register it elsewhere."
    return Violation(ViolationCode.MANAGED, message, provider=uuid, resource_class=name)


def _names(facts: Facts, wanted: Wanted) -> Iterator[Violation]:
    changed: list[tuple[ProviderId, str]] = []
    names: dict[str, ProviderId] = {}
    for uuid, standing in sorted(wanted.providers.items()):
        before = facts.providers.get(uuid)
        if standing is not None and (before is None or before.name != standing.name):
            changed.append((uuid, standing.name))
        elif standing is not None:
            names[standing.name] = uuid
    for uuid, name in changed:
        if not 1 <= len(name) <= NAME_LENGTH_MAX:
            message = f"The name of provider {uuid} must have 1 to {NAME_LENGTH_MAX} characters."
            yield Violation(ViolationCode.NAME_INVALID, message, provider=uuid)
        holder = names.get(name)
        if holder is None:
            known = facts.names.get(name)
            holder = None if known in wanted.providers else known
        if holder is not None:
            message = f"Provider {uuid} cannot be named {name}: provider {holder} has this name."
            yield Violation(ViolationCode.NAME_TAKEN, message, provider=uuid)
        names.setdefault(name, uuid)


def _parents(facts: Facts, wanted: Wanted, forest: Forest) -> Iterator[Violation]:
    children: dict[ProviderId, set[ProviderId]] = {}
    for uuid, standing in wanted.providers.items():
        if standing is None:
            children.setdefault(uuid, set()).update(facts.children.get(uuid, ()))
        elif standing.parent is not None and not forest.exists(standing.parent):
            children.setdefault(standing.parent, set()).add(uuid)
    for parent, below in sorted(children.items()):
        if parent not in wanted.providers:
            yield unknown(parent)
            continue
        for child in sorted(below):
            standing = forest.standing_of(child)
            if standing is not None and standing.parent == parent:
                message = f"Provider {parent} cannot be deleted: provider {child} is below it."
                yield Violation(ViolationCode.HAS_CHILDREN, message, provider=parent)


def providers_after(
    facts: Facts, now: Instant, wanted: Wanted, forest: Forest
) -> dict[ProviderId, Provider | None]:
    """Return the providers whose standing, root or closure changes; generations stay.

    New ones are created one instant after the other, parents first.
    """
    after: dict[ProviderId, Provider | None] = {}
    for number, uuid in enumerate(forest.elsewhere()):
        standing = forest.standing_of(uuid)
        assert standing is not None
        before = facts.providers.get(uuid)
        above = None
        if standing.parent is not None:
            above = after.get(standing.parent) or facts.providers[standing.parent]
        made = before or _created(uuid, standing, Instant(now + number))
        closed = _own_closure(made, wanted) or (above.withheld if above else None)
        root = uuid if above is None else above.root
        moved = replace(
            made, name=standing.name, parent=standing.parent, root=root, withheld=closed
        )
        if before is not None and moved.root != before.root:
            moved = replace(moved, updated_at=after_creation(moved, now))
        after[uuid] = moved
    for uuid, standing in wanted.providers.items():
        if standing is None:
            after[uuid] = None
        elif uuid not in after:
            after[uuid] = replace(facts.providers[uuid], name=standing.name)
    return after


def _created(uuid: ProviderId, standing: Standing, now: Instant) -> Provider:
    return Provider(uuid, standing.name, 0, standing.parent, uuid, now, now)


def _own_closure(provider: Provider, wanted: Wanted) -> Withheld | None:
    """Return why a provider is withheld by itself in the end; None: it is not."""
    if provider.uuid in wanted.drained:
        reason = wanted.drained[provider.uuid]
        return None if reason is None else Withheld(reason, provider.uuid)
    return provider.withheld if _closes_itself(provider) else None


def _closes_itself(provider: Provider) -> bool:
    return provider.withheld is not None and provider.withheld.by == provider.uuid


def drained_now(facts: Facts, uuid: ProviderId) -> str | None:
    """Return why an operator has drained a provider itself; None: nobody has, or it is unknown."""
    provider = facts.providers.get(uuid)
    return None if provider is None else drained_by(provider)


def drained_by(provider: Provider) -> str | None:
    """Return why an operator has drained the provider itself; None: nobody has."""
    if provider.withheld is None or not is_drained(provider):
        return None
    return provider.withheld.reason


def _moves(facts: Facts, uuid: ProviderId, standing: Standing) -> bool:
    before = facts.providers.get(uuid)
    return before is None or before.parent != standing.parent
