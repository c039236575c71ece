"""A second implementation of pools of named slots, in lists and as simple as possible.

Boskos' clients, callers of the lease proxy and native clients share the same slots. Everything is
found by scanning. There are no outages, and every client needs only one pool.
"""

from dataclasses import dataclass, field

SECOND = 1_000_000
SILENCE = 10 * SECOND
YOUNG = 60 * SECOND
LATE = 4 * 3_600 * SECOND
LATE_MAX = 16
PRESENCE = 10 * SECOND
CONFIRM = 15 * SECOND
AGAIN_MAX = 4

BOSKOS, PROXY, NATIVE = "boskos", "proxy", "native"


@dataclass
class Rules:
    """An operator's settings of a pool."""

    ttl: int
    hold: int | None = None
    cooldown: int = 0
    lock_delay: int = 0
    proxy_ttl: int | None = None


@dataclass
class Slot:
    """One slot."""

    pool: str
    name: str
    state: str
    touched: int
    lease: "Lease | None" = None
    rests_until: int = 0
    late: list[tuple[int, list[str]]] = field(default_factory=list)
    """Until when a release of an earlier holder may come, and whose it may be."""
    doubtful: list[str] = field(default_factory=list)
    """Whose releases seem to have come during the present lease."""


@dataclass
class Lease:
    """A ticket or lease. `ttl` None: once granted, it needs no renewals."""

    id: str
    kind: str
    owner: str
    pool: str
    wants: str
    dest: str
    units: int
    patience: int
    deadline: int
    ttl: int | None = None
    hold: int | None = None
    state: str = "waiting"
    granted_at: int = 0
    hold_until: int | None = None
    confirmed: bool = False


@dataclass
class Model:
    """All pools and all leases."""

    rules: dict[str, Rules]
    slots: list[Slot]
    now: int
    leases: list[Lease] = field(default_factory=list)
    """In the order of asking."""
    requests: dict[tuple[str, str, str, str], list[Lease | None]] = field(default_factory=dict)
    """Of Boskos: the leases of (owner, pool, state, request id)."""

    def slot(self, name: str) -> Slot:
        """Return a slot."""
        return next(slot for slot in self.slots if slot.name == name)

    def find(self, key: str) -> Lease:
        """Return a lease."""
        return next(lease for lease in self.leases if lease.id == key)

    def held_by(self, lease: Lease) -> list[Slot]:
        """Return the slots of a lease."""
        return [slot for slot in self.slots if slot.lease is lease]

    # What is asked.

    def arrive(self, lease: Lease) -> None:
        """Put a ticket into its line."""
        self.leases.append(lease)

    def hear(self, lease: Lease) -> None:
        """Note a sign of life."""
        if lease.state == "waiting" and lease.kind == PROXY:
            if lease.deadline - (self.now + lease.patience) < PRESENCE // 2:
                lease.deadline = self.now + lease.patience + PRESENCE
        elif lease.state == "waiting" and self.now + lease.patience > lease.deadline:
            lease.deadline = self.now + lease.patience + lease.patience // 5
        elif lease.state == "granted" and lease.ttl is not None:
            lease.deadline = max(lease.deadline, self.now + lease.ttl)

    def request(self, fresh: Lease, request_id: str) -> Lease | None:
        """Poll with a request id; return the ticket or lease that answers it."""
        line = (fresh.owner, fresh.pool, fresh.wants, request_id)
        places = self.requests.setdefault(line, [None] * AGAIN_MAX)
        for lease in filter(None, places):
            if lease.state == "waiting":
                self.hear(lease)
                return lease
            if lease.state == "granted" and self.now - lease.granted_at <= YOUNG:
                return lease
        for n, lease in enumerate(places):
            if lease is not None and lease.state == "granted":
                continue
            places[n] = fresh
            self.arrive(fresh)
            return fresh
        return None

    def confirm(self, lease: Lease) -> None:
        """Confirm a lease of the proxy: its caller got the names of its slots."""
        lease.confirmed = True

    # What ends.

    def free(self, slot: Slot, state: str, cause: str, gone: bool = False) -> None:
        """Take a slot from its holder; `gone`: which releases nothing later."""
        lease, rules = slot.lease, self.rules[slot.pool]
        assert lease is not None
        own = cause in ("released", "retried")
        if lease.confirmed and not own and not gone:
            current = [one for one in slot.late if one[0] > self.now]
            group = [*slot.doubtful[:15], lease.id]
            if slot.doubtful:
                current = [(until, group) for until, _ in current]
            slot.late = [*current, (self.now + LATE, group)][-LATE_MAX:]
        slot.doubtful = []
        lost = cause in ("revoked", "ttl_over")
        rest = max(rules.cooldown, rules.lock_delay) if lost else rules.cooldown
        rest = 0 if cause == "unconfirmed" else rest
        slot.rests_until = self.now + rest if state == "free" else 0
        slot.lease, slot.state, slot.touched = None, state, self.now

    def end(self, lease: Lease, cause: str, state: str = "free", gone: bool = False) -> None:
        """End a ticket or lease, and free its slots; `gone` as in `free`."""
        for slot in self.held_by(lease):
            self.free(slot, state, cause, gone)
        lease.state = cause

    def holder_gone(self, lease: Lease) -> None:
        """Revoke it; its holder has released nothing, so the releases that came were others'."""
        for slot in [slot for slot in self.slots if slot.pool == lease.pool]:
            slot.late = [one for one in slot.late if one[0] > self.now]
            if lease.id in slot.doubtful and not slot.late:
                self.let_go(slot, "free", "released")
            for one in slot.late:
                if lease.id in one[1]:
                    slot.late.remove(one)
                    break
            slot.late = [(until, [x for x in of if x != lease.id]) for until, of in slot.late]
            slot.doubtful = [x for x in slot.doubtful if x != lease.id]
        if lease.state in ("waiting", "granted"):
            self.end(lease, "revoked", gone=True)

    def let_go(self, slot: Slot, state: str, cause: str) -> None:
        """Take one slot; its lease ends with the last."""
        lease = slot.lease
        assert lease is not None
        self.free(slot, state, cause)
        lease.units -= 1
        if not self.held_by(lease):
            lease.state = cause

    def give_back(self, name: str) -> None:
        """Release by name through the proxy."""
        slot = self.slot(name)
        current = [one for one in slot.late if one[0] > self.now]
        lease = slot.lease
        if current:
            group = [*dict.fromkeys([*slot.doubtful, *(x for _, of in current for x in of)])][:16]
            slot.late = [(until, group) for until, _ in current[1:]]
            slot.doubtful = []
            if lease is not None and lease.confirmed:
                slot.doubtful = group
                lease.hold_until = lease.hold_until or self.now + LATE
        elif lease is not None and lease.kind == PROXY:
            self.let_go(slot, "free", "released")

    def reset(self, pool: str, state: str, seconds: int, dest: str) -> list[str]:
        """End leases without a sign of life for this long; return the names."""
        taken = []
        for slot in self.slots:
            lease = slot.lease
            if lease is None or (slot.pool, slot.state) != (pool, state):
                continue
            silent = self.now - slot.touched // SECOND * SECOND
            if lease.kind != BOSKOS:
                if lease.ttl is None:
                    continue
                silent = min(silent, self.now - (lease.deadline - lease.ttl))
            if silent >= seconds * SECOND:
                taken.append(slot.name)
        for name in taken:
            self.let_go(self.slot(name), dest, "revoked")
        return taken

    def due(self) -> list[int]:
        """Return all times at which time itself may change something."""
        found = [slot.rests_until for slot in self.slots]
        for lease in self.leases:
            if lease.state == "waiting":
                found.append(lease.deadline)
                silence = 0 if lease.kind == PROXY else SILENCE
                found.append(lease.deadline - lease.patience + silence + 1)
            elif lease.state == "granted":
                found += [lease.hold_until] if lease.hold_until is not None else []
                found += [lease.deadline] if lease.ttl is not None or self.doubted(lease) else []
        return found

    def sweep(self) -> None:
        """End leases that are over."""
        for lease in self.leases:
            if lease.state == "waiting" and self.now >= lease.deadline:
                lease.state = "unheard"
            elif lease.state == "granted":
                if lease.hold_until is not None and self.now >= lease.hold_until:
                    self.end(lease, "hold_over")
                elif self.doubted(lease) and self.now >= lease.deadline:
                    self.end(lease, "unconfirmed")
                elif lease.ttl is not None and self.now >= lease.deadline:
                    self.end(lease, "ttl_over")

    def doubted(self, lease: Lease) -> bool:
        """Is it unknown whether the caller knows of its lease?"""
        return lease.kind == PROXY and lease.state == "granted" and not lease.confirmed

    # Who is granted.

    def idle(self, pool: str, state: str) -> list[Slot]:
        """Return the slots that may be granted, the longest free first."""
        found = [
            slot
            for slot in self.slots
            if slot.pool == pool
            and slot.state == state
            and slot.lease is None
            and slot.rests_until <= self.now
        ]
        return sorted(found, key=lambda slot: (slot.touched, slot.name))

    def admit(self, polled: str | None = None) -> dict[tuple[str, str], int]:
        """Grant the tickets that may start; return the slots left for others, by pool and state."""
        aside: dict[tuple[str, str], int] = {}
        for lease in self.leases:
            if lease.state != "waiting":
                continue
            silence = self.now - (lease.deadline - lease.patience)
            if lease.kind == BOSKOS and lease.id != polled and silence > SILENCE:
                continue
            if lease.kind == PROXY and silence > 0:
                continue
            if lease.units > sum(slot.pool == lease.pool for slot in self.slots):
                continue
            at = (lease.pool, lease.wants)
            idle = self.idle(*at)
            left = len(idle) - aside.get(at, 0)
            if left >= lease.units and (lease.kind != BOSKOS or lease.id == polled):
                self.grant(lease, idle[: lease.units])
            else:
                aside[at] = aside.get(at, 0) + min(max(0, left), lease.units)
        keys = {(slot.pool, slot.state) for slot in self.slots}
        return {at: len(self.idle(*at)) - aside.get(at, 0) for at in keys}

    def grant(self, lease: Lease, slots: list[Slot]) -> None:
        """Turn a ticket into a lease of these slots."""
        lease.state, lease.granted_at = "granted", self.now
        lease.hold_until = None if lease.hold is None else self.now + lease.hold
        if lease.kind == PROXY:
            lease.deadline = self.now + CONFIRM
            ends = [lease.hold_until, self.rules[lease.pool].proxy_ttl]
            ends[1] = None if ends[1] is None else self.now + ends[1]
            lease.hold_until = min((end for end in ends if end is not None), default=None)
        if lease.ttl is not None:
            lease.deadline = self.now + lease.ttl
        for slot in slots:
            slot.lease, slot.state, slot.touched = lease, lease.dest, self.now
