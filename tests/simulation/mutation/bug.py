"""A planted bug, and what finds it."""

from dataclasses import dataclass

RULES, SLOTS, SERVICE, FLEET, AGENT = "rules", "slots", "service", "fleet", "agent"
PROVISIONING, REPORTERS, METAL3 = "provisioning", "reporters", "metal3"
SPELLINGS, ROOTS, CLIENT, SEARCH = "spellings", "roots", "client", "search"
PRESENCE, RESHAPES, ADAPTIVE = "presence", "reshapes", "adaptive"
SHARES, BOOKINGS = "shares", "bookings"
"""What finds a bug: seeds on the rules of admission, on shared slots, around the whole service, of
a fleet of agents, of the provisioning of hosts, of reporters, or of metal3's hosts; or the tests of
the agent's program, of what the gate recognises, of which roots agents have, of what waits for
leases, of the search, of clients that are gone, of reshapes, of adaptive limits, of fair shares and
cohorts, or of bookings."""


@dataclass(frozen=True)
class Bug:
    """A planted bug: invariant, description, file, and which text is replaced by which."""

    invariant: str
    said: str
    path: str
    text: str
    wrong: str
    hunter: str = RULES
