"""The bugs of groups of reporters that `make mutate` plants.

The invariants, R1 to R11, are in `tests/simulation/reporters/auditor.py`.
"""

from tests.simulation.mutation.bug import REPORTERS, Bug

MEMBERS = "src/moorage/core/fleet/members.py"
OWNERSHIP = "src/moorage/core/fleet/ownership.py"
CASES = "src/moorage/service/fleet/reporter_cases.py"
SERVICE = "src/moorage/service/fleet/reporters.py"
REPORTED = "src/moorage/core/ledger/reported.py"
REPORTER = "src/moorage/integrations/ironic/report/reporter.py"
MEMBERSHIP = "src/moorage/integrations/ironic/report/membership.py"

REPORTER_BUGS = (
    Bug(
        "R1",
        "the owner is checked before the batch only",
        CASES,
        "                owners.check(node.uuid, sender.member)\n",
        "                pass\n",
        REPORTERS,
    ),
    Bug(
        "R2",
        "any token of a member is good",
        MEMBERS,
        "    if member is None or member.token != token:\n",
        "    if member is None:\n",
        REPORTERS,
    ),
    Bug(
        "R3",
        "a member that was silent for too long keeps its token",
        MEMBERS,
        "    return is_live(member, moment) and member.token.startswith(",
        "    return member.token.startswith(",
        REPORTERS,
    ),
    Bug(
        "R3",
        "a token is given again",
        MEMBERS,
        "    number = known.tokens + 1\n",
        "    number = len(facts.members) + 1\n",
        REPORTERS,
    ),
    Bug(
        "R4",
        "pins count for nothing",
        OWNERSHIP,
        "self.members, self.pins.get(node))",
        "self.members, None)",
        REPORTERS,
    ),
    Bug(
        "R4",
        "whoever has joined is live",
        MEMBERS,
        "    return moment.at < late_at(member, moment)\n",
        "    return True\n",
        REPORTERS,
    ),
    Bug(
        "R5",
        "a silent member keeps its nodes for one more TTL",
        MEMBERS,
        "    due = member.heard_until + moment.at - moment.alive\n",
        "    due = member.heard_until + moment.at - moment.alive + member.ttl\n",
        REPORTERS,
    ),
    Bug(
        "R6",
        "after a report without an answer the token stays",
        MEMBERSHIP,
        "            renew=lost != self._outlived,\n",
        "            renew=False,\n",
        REPORTERS,
    ),
    Bug(
        "R7",
        "what is equal is written again",
        REPORTED,
        "    return (\n        before.owned\n",
        "    return (\n        False\n",
        REPORTERS,
    ),
    Bug(
        "R8",
        "what a list omits is gone",
        REPORTER,
        "            if node is None:\n",
        "            if True:\n",
        REPORTERS,
    ),
    Bug(
        "R8",
        "after a takeover is sent whatever was known ever",
        REPORTER,
        "        self._leave_old()\n",
        "",
        REPORTERS,
    ),
    Bug(
        "R9",
        "a report replaces the traits of others",
        REPORTED,
        "    return foreign | others | own,",
        "    return others | own,",
        REPORTERS,
    ),
    Bug(
        "R10",
        "nobody looks for what was deleted while no reporter ran",
        REPORTER,
        "        missing = sorted({*before, *ledger} - seen)\n",
        "        missing = sorted(before - seen)\n",
        REPORTERS,
    ),
    Bug(
        "R10",
        "all nodes are read once only",
        REPORTER,
        'float("-inf") if moved else began + FULL_SECONDS',
        'float("-inf") if moved else float("inf")',
        REPORTERS,
    ),
    Bug(
        "R11",
        "a sign of life ends with the pass",
        MEMBERSHIP,
        "        await asyncio.shield(joining)\n",
        "        await joining\n",
        REPORTERS,
    ),
)
