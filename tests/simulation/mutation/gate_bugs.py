"""The bugs of the gate that `make mutate` plants.

G1: however a server reads a request, one that asks for a provision state is recognised or refused.
"""

from tests.simulation.mutation.bug import SPELLINGS, Bug

IRONIC = "src/moorage/integrations/ironic"

GATE_BUGS = (
    Bug(
        "G1",
        "any letters are an address",
        f"{IRONIC}/gate/heads.py",
        'if method == "CONNECT" or not TARGET.fullmatch(target):',
        'if method == "CONNECT" or not target.startswith("/"):',
        SPELLINGS,
    ),
    Bug(
        "G1",
        "any text is a verb",
        f"{IRONIC}/provision_request.py",
        "    if not VERB.fullmatch(verb):\n",
        "    if not verb:\n",
        SPELLINGS,
    ),
    Bug(
        "G1",
        "an unknown verb starts no work",
        f"{IRONIC}/states.py",
        "if event is not None and is_known and state not in BUSY_FROM[event]:",
        "if event is None or (is_known and state not in BUSY_FROM[event]):",
        SPELLINGS,
    ),
    Bug(
        "G1",
        "a reading may have a body",
        f"{IRONIC}/provision_request.py",
        "        if has_body and (is_place or _HIDDEN.search(_folded(names))):\n",
        "        if False:\n",
        SPELLINGS,
    ),
)
