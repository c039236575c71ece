"""The bugs of bookings that `make mutate` plants.

B1: nothing is granted into a booking. B2: no booking exceeds the limit. B3: it begins in time, also
after a restart. B4: what nobody uses is given back. B5: nobody starves. B6: it is its owner's.
"""

from tests.simulation.mutation.bug import BOOKINGS, Bug

CORE = "src/moorage/core/admission"

BOOKING_BUGS = (
    Bug(
        "B1",
        "a lease is granted that lasts into a booking",
        f"{CORE}/booked_pools.py",
        "return min(spans) + self._rest(name) if spans else FOREVER - self._at",
        "return 1",
        BOOKINGS,
    ),
    Bug(
        "B1",
        "a lease without an end is accepted before a booking",
        f"{CORE}/booked_pools.py",
        "return min(spans) + self._rest(name) if spans else FOREVER - self._at",
        "return min(spans) + self._rest(name) if spans else 1",
        BOOKINGS,
    ),
    Bug(
        "B1",
        "a hold is extended over the booking of another",
        f"{CORE}/bookings.py",
        'pool = reaches(facts, at, lease, until) if lease.state == "granted" else None',
        "pool = None",
        BOOKINGS,
    ),
    Bug(
        "B1",
        "the cooldown lasts into a booking",
        f"{CORE}/profile.py",
        "ends = FOREVER if until is None else until + self.rest",
        "ends = FOREVER if until is None else until",
        BOOKINGS,
    ),
    Bug(
        "B2",
        "a booking is accepted over the limit",
        f"{CORE}/profile.py",
        "                if load + units > self.limit:\n                    return window",
        "                if load > self.limit:\n                    return window",
        BOOKINGS,
    ),
    Bug(
        "B2",
        "a booking does not see a lease without an end",
        f"{CORE}/profile.py",
        "ends = FOREVER if until is None else until + self.rest",
        "ends = self._at + 1 if until is None else until + self.rest",
        BOOKINGS,
    ),
    Bug(
        "B3",
        "nobody looks at the start of a booking",
        f"{CORE}/booked_pools.py",
        "                times.append(window.start + skew)",
        "                times.append(None)",
        BOOKINGS,
    ),
    Bug(
        "B3",
        "nobody looks at the end of a booking",
        f"{CORE}/booked_pools.py",
        "times = [window.end + skew, self._missed_at(booking, window.start)]",
        "times = [None, self._missed_at(booking, window.start)]",
        BOOKINGS,
    ),
    Bug(
        "B3",
        "a restart forgets when to look",
        "src/moorage/store/admission/rows.py",
        "        pool.wake_at,\n        spec.member_group,\n        pool.booked_until,",
        "        None,\n        spec.member_group,\n        pool.booked_until,",
        BOOKINGS,
    ),
    Bug(
        "B3",
        "a jump of the clock is not noticed",
        "src/moorage/service/admission/sweeper.py",
        "if found.skew != self._skew:",
        "if self._skew is None:",
        BOOKINGS,
    ),
    Bug(
        "B4",
        "what nobody uses is kept",
        f"{CORE}/booked_pools.py",
        "            if missed and not self._facts.calls.get(key):",
        "            if False and missed:",
        BOOKINGS,
    ),
    Bug(
        "B4",
        "who waits counts as one that did not come",
        f"{CORE}/booked_pools.py",
        "            if missed and not self._facts.calls.get(key):",
        "            if missed:",
        BOOKINGS,
    ),
    Bug(
        "B5",
        "a long ticket is delayed by those behind it",
        f"{CORE}/booked_pools.py",
        "self._profile(name).plan(units, start, start + self._wanted(name, ticket))",
        "self._profile(name).plan(0, start, start + self._wanted(name, ticket))",
        BOOKINGS,
    ),
    Bug(
        "B5",
        "two bookings wait for each other",
        f"{CORE}/booked_pools.py",
        "return self._profile(name).kept() if self._has(name) and booking is None else 0",
        'return self._profile(name).kept(booking or "") if self._has(name) else 0',
        BOOKINGS,
    ),
    Bug(
        "B6",
        "anybody uses a booking",
        f"{CORE}/bookings.py",
        "    booking_of(facts, request.booking, Booker(request.owner, request.roles))\n",
        "",
        BOOKINGS,
    ),
)
