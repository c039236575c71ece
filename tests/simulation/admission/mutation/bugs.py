"""The bugs that `make mutate` plants: one at least for each invariant of admission."""

from dataclasses import dataclass

RULES, SLOTS, SERVICE = "rules", "slots", "service"
"""What finds a bug: seeds on the rules, on shared slots, or around the whole service."""


@dataclass(frozen=True)
class Bug:
    """A planted bug: invariant, description, file, and which text is replaced by which."""

    invariant: str
    said: str
    path: str
    text: str
    wrong: str
    hunter: str = RULES


CORE = "src/moorage/core/admission"

BUGS = (
    Bug(
        "I1",
        "one unit too many",
        f"{CORE}/units.py",
        "return {FREE: pool.spec.limit - pool.occupied - _resting(pool.resting, at)}",
        "return {FREE: pool.spec.limit - pool.occupied - _resting(pool.resting, at) + 1}",
    ),
    Bug(
        "I1",
        "a lowered limit is not looked at",
        f"{CORE}/bars.py",
        "if units > limit_of(facts, pool):",
        "if units > 1_000_000:",
    ),
    Bug(
        "I2",
        "a slot that is held is granted",
        f"{CORE}/slots.py",
        "if not slot.occupied and slot.state == state]",
        'if slot.state in (state, "leased")]',
    ),
    Bug(
        "I3",
        "a gang is granted when a part of it fits",
        f"{CORE}/admit.py",
        "lacks = any(self._lacks(ticket,",
        "lacks = all(self._lacks(ticket,",
    ),
    Bug(
        "I3",
        "one slot is granted for many",
        f"{CORE}/admit.py",
        "[slots.pop() for _ in range(need.units)]",
        "[slots.pop()]",
    ),
    Bug(
        "I4",
        "two grants of a batch have one token",
        f"{CORE}/draft.py",
        "        self._grants += 1\n",
        "",
    ),
    Bug(
        "I4",
        "an old token is let in",
        f"{CORE}/requests.py",
        "if proof.token is not None and str(proof.token) != str(lease.token):",
        "if proof.token is not None and not str(proof.token):",
    ),
    Bug(
        "I5",
        "who is silent keeps its units",
        f"{CORE}/expiry.py",
        "if due is not None and due <= moment.at:",
        "if due is not None and due <= moment.at - 60_000_000:",
    ),
    Bug(
        "I6",
        "a lease ends after half of its TTL",
        f"{CORE}/draft.py",
        "Instant(moment.alive + ticket.ttl)",
        "Instant(moment.alive + ticket.ttl // 2)",
    ),
    Bug(
        "I6",
        "a renewal is accepted and forgotten",
        f"{CORE}/leases.py",
        "until = max(lease.heard_until, moment.alive + lease.ttl)",
        "until = lease.heard_until",
    ),
    Bug(
        "I7",
        "a ticket is withdrawn although it is polled",
        f"{CORE}/bars.py",
        "or until <= ticket.heard_until:\n",
        "or until <= ticket.heard_until + 3_600_000_000:\n",
    ),
    Bug(
        "I7",
        "who retries loses its ticket",
        f"{CORE}/leases.py",
        "    _ask(draft, new, old.arrival if keeps else None, old)\n",
        "",
    ),
    Bug(
        "I8",
        "who came last is first",
        f"{CORE}/admit.py",
        "return (-ticket.priority, ticket.arrival)",
        "return (-ticket.priority, -ticket.arrival)",
    ),
    Bug(
        "I8",
        "nothing is set aside for who waits longer",
        f"{CORE}/admit.py",
        "            left[need.state] = max(0, there - need.units)\n",
        "            left.setdefault(need.state, 0)\n",
    ),
    Bug(
        "I9",
        "a repeated request is a new one",
        f"{CORE}/leases.py",
        "    known = facts.asked.get((wish.owner, wish.key))\n",
        "    known = None\n",
    ),
    Bug(
        "I9",
        "a key is used for another request",
        f"{CORE}/leases.py",
        "if known is not None and facts.leases[known].digest != wish.digest:",
        "if known is not None and not wish.digest:",
    ),
    Bug(
        "I9",
        "the last outcome of a lease counts",
        f"{CORE}/leases.py",
        "    if found.outcome is not None:\n",
        "    if False:\n",
    ),
    Bug(
        "I10",
        "anybody may release",
        f"{CORE}/requests.py",
        "if proof.owner is not None and proof.owner != lease.owner:",
        "if proof.owner is not None and not lease.owner:",
    ),
    Bug(
        "I11",
        "nobody looks when a cooldown is over",
        f"{CORE}/admit.py",
        "times = [rest.until for rest in pool.resting if rest.until > at]",
        "times = []",
    ),
    Bug(
        "I11",
        "a line that was read in part is taken for the whole",
        f"{CORE}/admit.py",
        "        if self.short:\n            raise Restart(TicketsNeeded(self.short))\n",
        "",
    ),
    Bug(
        "I12",
        "many units pay for one",
        f"{CORE}/pacing.py",
        "max(at, paced_at) + units * (pacing.interval + jitter)",
        "max(at, paced_at) + pacing.interval + jitter",
    ),
    Bug(
        "I13",
        "a hold is over too late",
        f"{CORE}/draft.py",
        "Instant(moment.at + ticket.hold)",
        "Instant(moment.at + 2 * ticket.hold)",
    ),
    Bug(
        "I15",
        "a gang that leaves the line is counted on",
        f"{CORE}/draft.py",
        "gangs=pool.gangs + sign * gang",
        "gangs=pool.gangs + max(0, sign) * gang",
    ),
    Bug(
        "I16",
        "the service jumps with the wall clock",
        "src/moorage/core/service_time.py",
        "        skew += expected_wall - wall\n",
        "        skew += 0\n",
    ),
    Bug(
        "I16",
        "an outage counts as silence",
        "src/moorage/core/service_time.py",
        "        downtime += at - lived_at\n",
        "        downtime += 0\n",
    ),
    Bug(
        "I16",
        "a quick restart counts as silence",
        "src/moorage/core/service_time.py",
        "        downtime += back_at - lived_at\n",
        "        downtime += 0\n",
        SERVICE,
    ),
    Bug(
        "I17",
        "who can never be granted keeps others waiting",
        f"{CORE}/admit.py",
        "        if not ticket.forced and self._is_passed_over(ticket):\n            return\n",
        "        if not ticket.forced and self._is_passed_over(ticket):\n"
        "            self._set_aside(ticket)\n            return\n",
    ),
    Bug(
        "I18",
        "a quota counts only what is held already",
        f"{CORE}/bars.py",
        "if quota is not None and units + granted > quota:",
        "if quota is not None and granted > quota:",
    ),
    Bug(
        "I19",
        "a slot is shown as held after its lease",
        f"{CORE}/slots.py",
        '        owner="",\n        lease=None,\n        state=state,\n',
        "        state=state,\n",
    ),
    Bug(
        "I20",
        "nobody looks when pacing permits a grant",
        f"{CORE}/admit.py",
        "if opens is not None and opens > at:",
        "if opens is not None and opens > at + 60_000_000:",
    ),
    Bug(
        "I7",
        "who retries and is put into the line need not be heard of",
        "src/moorage/service/admission/lease_cases.py",
        "leases.ask_again(old, self.fresh, self.key, standing(self.caller.role)).heard(until)",
        "leases.ask_again(old, self.fresh, self.key, standing(self.caller.role))",
        SERVICE,
    ),
    Bug(
        "I11",
        "what a lease held in the ledger stays there",
        "src/moorage/service/batch/ledger_share.py",
        "        if consumer is not None and consumer.created_at == held.since:\n",
        "        if consumer is not None and consumer.created_at == held.consumer:\n",
        SERVICE,
    ),
    Bug(
        "I20",
        "who did not fit is not read again when there is room",
        "src/moorage/store/queries/sqlite/admission.sql",
        "            >= one.value ->> 3\n",
        "            >= 0\n",
        SERVICE,
    ),
    Bug(
        "I14",
        "a renewal is acknowledged and never committed",
        "src/moorage/service/batch/transactor.py",
        "            if made.written:\n",
        "            if made.revision is not None:\n",
        SERVICE,
    ),
    Bug(
        "I15",
        "followers are not told of an end",
        "src/moorage/store/admission/changes.py",
        '        yield "lease", key, _body(lease)\n',
        '        if lease is None or lease.state != "ended":\n'
        '            yield "lease", key, _body(lease)\n',
        SERVICE,
    ),
    Bug(
        "I18",
        "a new quota does not count what was held before",
        "src/moorage/service/admission/pool_cases.py",
        "quotas=set() if self.spec.quota is None else {self.name}",
        "quotas=set()",
        SERVICE,
    ),
    Bug(
        "I6",
        "a reaper goes by the age of slots, whoever renews",
        f"{CORE}/compat/slots_by_name.py",
        "    if lease is None or lease.owner.startswith(BOSKOS):\n",
        "    if lease is None or lease.owner:\n",
        SLOTS,
    ),
    Bug(
        "I6",
        "a lease that is asked for again is not renewed",
        "src/moorage/service/admission/lease_cases.py",
        "leases.repeat(facts,",
        "leases.poll(facts,",
        SLOTS,
    ),
    Bug(
        "I10",
        "a late release ends the next lease",
        f"{CORE}/compat/lease_proxy.py",
        "    if late is not None:\n",
        "    if late is not None and not name:\n",
        SLOTS,
    ),
    Bug(
        "I9",
        "two requests of Boskos have one key",
        f"{CORE}/compat/boskos.py",
        'part.replace("%", "%25").replace("/", "%2F") for part in parts',
        "part for part in parts",
        SLOTS,
    ),
    Bug(
        "I8",
        "what is set aside can be had by name",
        f"{CORE}/admit.py",
        "if any(left.get(state, 0) < units for state, units in wanted.items()):",
        "if any(len(self._slots(name, state)) < units for state, units in wanted.items()):",
        SLOTS,
    ),
    Bug(
        "I8",
        "a slot that rests can be had by name",
        f"{CORE}/admit.py",
        "if is_free(slot, self.moment.at)), None)",
        "if not slot.occupied), None)",
        SLOTS,
    ),
    Bug(
        "I2",
        "what was revoked is granted at once",
        f"{CORE}/units.py",
        "    if cause in UNRETURNED:\n",
        "    if not cause:\n",
        SLOTS,
    ),
)
