"""A planted bug, and what finds it."""

from dataclasses import dataclass

RULES, SLOTS, SERVICE, FLEET, AGENT = "rules", "slots", "service", "fleet", "agent"
PROVISIONING, REPORTERS = "provisioning", "reporters"
"""What finds a bug: seeds on the rules of admission, on shared slots, around the whole service, of
a fleet of agents, of the
provisioning of hosts, or of reporters; or the tests of the agent's program."""


@dataclass(frozen=True)
class Bug:
    """A planted bug: invariant, description, file, and which text is replaced by which."""

    invariant: str
    said: str
    path: str
    text: str
    wrong: str
    hunter: str = RULES
