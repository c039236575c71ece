"""Planted bugs in fair shares, cohorts and preemption. They must match source text."""

from tests.simulation.mutation.bug import SERVICE, SHARES, Bug

CORE = "src/moorage/core/admission"

SHARING_BUGS = (
    Bug(
        "I26",
        "the virtual time of a fair share falls",
        f"{CORE}/sharing/fair_share.py",
        "now=min(TAG_MAX, sharing.now + rise), sharers=present)",
        "now=sharing.now + rise if rise % 3 else ticket.place // 2, sharers=present)",
    ),
    Bug(
        "I26",
        "the virtual time of a fair share stands still",
        f"{CORE}/sharing/fair_share.py",
        "now=min(TAG_MAX, sharing.now + rise), sharers=present)",
        "sharers=present)",
        SHARES,
    ),
    Bug(
        "I27",
        "the pools of a cohort grant units that they have lent",
        f"{CORE}/sharing/cohorts.py",
        "max(0, min(lends, self._lendable() - self._lent()))",
        "lends",
        SHARES,
    ),
    Bug(
        "I27",
        "who borrows goes before who stays within the limit",
        f"{CORE}/admit.py",
        "self.borrowers.append((ticket, kept))",
        "self._borrow(ticket, kept)",
        SHARES,
    ),
    Bug(
        "I27",
        "a pool borrows without bound",
        f"{CORE}/sharing/cohorts.py",
        "left = self._pools[name].spec.borrowing - self.borrowed(name)",
        "left = 1_000_000",
        SHARES,
    ),
    Bug(
        "I26",
        "the debt of a sharer never decays",
        f"{CORE}/sharing/fair_share.py",
        "    return int(debt * 0.5 ** ((at - known.at) / share.half_life))\n",
        "    return debt\n",
        SHARES,
    ),
    Bug(
        "I26",
        "a withdrawn ticket is charged",
        f"{CORE}/sharing/fair_share.py",
        "_cost(ticket, (granted or 0) - units)",
        "_cost(ticket, (granted or units) - units)",
    ),
    Bug(
        "I26",
        "a lease costs what was expected, not what it has used",
        f"{CORE}/sharing/fair_share.py",
        "    finish = known.finish + cost - _cost(lease, units)\n",
        "    finish = known.finish\n",
        SHARES,
    ),
    Bug(
        "I26",
        "weights do not count",
        f"{CORE}/sharing/fair_share.py",
        "    return share.weights.get(name, share.default)\n",
        "    return share.default\n",
        SHARES,
    ),
    Bug(
        "I26",
        "those that came first are first, whatever they have used",
        f"{CORE}/sharing/fair_share.py",
        "place = sharing.now + debt_of(sharing, share, name, at) if kept is None else kept",
        "place = sharing.now",
        SHARES,
    ),
    Bug(
        "I28",
        "the units of a lease that is asked to stop are granted at once",
        f"{CORE}/admit.py",
        "        self.draft.changes.leases |= stopping.asked\n",
        """        for lease in stopping.asked.values():
            self.draft.end(lease, "preempted")
""",
        SHARES,
    ),
    Bug(
        "I28",
        "who did not permit it is asked to stop",
        f"{CORE}/sharing/preemption.py",
        "elif lease.preemptible is not None and self._is_of_use(lease):",
        "elif self._is_of_use(lease):",
        SHARES,
    ),
    Bug(
        "I28",
        "equal priorities preempt each other for ever",
        f"{CORE}/sharing/preemption.py",
        """        if lease.priority != ticket.priority:
            return lease.priority < ticket.priority
""",
        """        if lease.priority <= ticket.priority:
            return True
""",
        SHARES,
    ),
    Bug(
        "I28",
        "a preempted lease has no end",
        f"{CORE}/expiry.py",
        '        return "superseded" if lease.preempted_by is None else "preempted"\n',
        '        return "superseded"\n',
        SHARES,
    ),
    Bug(
        "I28",
        "outages before it was asked to stop lengthen the grace of a holder",
        f"{CORE}/sharing/preemption.py",
        "stop_downtime=self._moment.at - self._moment.alive,",
        "stop_downtime=0,",
        SHARES,
    ),
    Bug(
        "I26",
        "the receiver of a lease pays for the time of the giver",
        f"{CORE}/sharing/fair_share.py",
        "    ended = structs.replace(pool, sharing=returns(pool, old, units, at, used=True))\n",
        "    ended = pool\n",
        SHARES,
    ),
    Bug(
        "I28",
        "a lease that is asked to stop does not know its consumer any more",
        "src/moorage/service/batch/admission_room.py",
        'starts = before is None or before.state != "granted"',
        "starts = True",
        SERVICE,
    ),
    Bug(
        "I28",
        "what is stopping already does not count",
        f"{CORE}/sharing/preemption.py",
        "            if lease.stop_until is not None:\n                self._count(lease, -1)\n",
        "            if lease.stop_until is not None:\n                pass\n",
        SHARES,
    ),
    Bug(
        "I28",
        "holders are asked although all of them are not enough",
        f"{CORE}/sharing/preemption.py",
        """            self._units.update(before)
            self._shares = shares
            return None
""",
        """            return found
""",
        SHARES,
    ),
    Bug(
        "I28",
        "who has more takes from who has less",
        f"{CORE}/sharing/preemption.py",
        "gets * weight_of(share, other) <= keeps * weight_of(share, mine)",
        "gets * weight_of(share, other) > keeps * weight_of(share, mine)",
        SHARES,
    ),
)
