"""The bugs of reshapes that `make mutate` plants: in what docs/decisions/0058 says of three rules.

T1: the plan of a machine changes its own tree, and nothing else. T2: an undo creates nothing again
for a lease that has ended. T3: a consumer that a plan names exists.
"""

from tests.simulation.mutation.bug import RESHAPES, Bug

CORE = "src/moorage/core/ledger/reshaping"

RESHAPE_BUGS = (
    Bug(
        "T1",
        "a plan names providers of other trees",
        f"{CORE}/own_tree.py",
        "    yield from foreign(touched_providers(plan) - own)\n",
        "",
        RESHAPES,
    ),
    Bug(
        "T1",
        "what another agent has is a machine's own",
        f"{CORE}/own_tree.py",
        "    own = {one.uuid for one in below if one.agent in (None, machine.agent)}\n",
        "    own = {one.uuid for one in below}\n",
        RESHAPES,
    ),
    Bug(
        "T1",
        "guests are assigned to providers of others",
        f"{CORE}/own_tree.py",
        "        named.update(*move.assign.values())\n",
        "        pass\n",
        RESHAPES,
    ),
    Bug(
        "T1",
        "parts of another agent move along",
        f"{CORE}/own_tree.py",
        "    yield from _moved_along(facts, plan, machine)\n",
        "",
        RESHAPES,
    ),
    Bug(
        "T1",
        "a machine chooses the UUIDs of its children",
        f"{CORE}/own_tree.py",
        "            new.uuid != (expected := uuid_for(new.parent, new.name))\n",
        "            new.parent != (expected := new.parent)\n",
        RESHAPES,
    ),
    Bug(
        "T1",
        "a machine takes names of others",
        f"{CORE}/own_tree.py",
        '        if not name.startswith(f"{root}_"):\n',
        "        if not name:\n",
        RESHAPES,
    ),
    Bug(
        "T1",
        "a machine releases units of guests",
        f"{CORE}/own_tree.py",
        '        "release": plan.release,\n',
        "",
        RESHAPES,
    ),
    Bug(
        "T1",
        "a machine lets units out of a drain",
        f"{CORE}/own_tree.py",
        "    if len(closed) > 1:\n",
        "    if False:\n",
        RESHAPES,
    ),
    Bug(
        "T1",
        "the plan of a machine is planned as that of an operator",
        "src/moorage/service/fleet/plan_cases.py",
        "        planned = plan_reshape(facts, trial.now, self.plan, author=machine)\n",
        "        planned = plan_reshape(facts, trial.now, self.plan)\n",
        RESHAPES,
    ),
    Bug(
        "T2",
        "the consumer of an ended lease is created again",
        f"{CORE}/inverse.py",
        "        if lease is not None and is_ended(consumer, owners, lease, self._leases):\n",
        "        if False:\n",
        RESHAPES,
    ),
    Bug(
        "T2",
        "a reshape forgets the leases of whom it removes",
        f"{CORE}/inverse.py",
        "        leases_of(facts, owners, leases),\n",
        "        {},\n",
        RESHAPES,
    ),
    Bug(
        "T2",
        "who is left out is created again",
        f"{CORE}/inverse.py",
        "        if consumer in owners and consumer in self._left_out:\n",
        "        if False:\n",
        RESHAPES,
    ),
    Bug(
        "T2",
        "an undo does not keep leases from ending",
        f"{CORE}/inverse.py",
        "    keys.created_again.update(inverse.leases)\n",
        "",
        RESHAPES,
    ),
    Bug(
        "T3",
        "nobody looks whether consumers exist",
        f"{CORE}/planning.py",
        "    found += drafting.unknown_consumers(facts, plan)\n",
        "",
        RESHAPES,
    ),
    Bug(
        "T3",
        "a consumer that vacates need not exist",
        f"{CORE}/drafting.py",
        '        ("vacate", plan.vacate.keys()),\n',
        "",
        RESHAPES,
    ),
    Bug(
        "T3",
        "a consumer that is left out need not have been removed",
        f"{CORE}/inverse.py",
        "        for uuid in sorted(leave_out - inverse.owners.keys()):\n",
        "        for uuid in sorted(leave_out - leave_out):\n",
        RESHAPES,
    ),
)
