"""Two processes plan alike: no order of a set shows in the digest, or in the violations."""

import os
import random
import subprocess
import sys
from hashlib import sha256

from msgspec import json

from moorage.core.ledger.reshaping.planning import plan_reshape
from tests.core.ledger.build import NOW
from tests.core.ledger.reshaping.drawn import document, draw_plan, draw_state, facts_of

PLANS = 200


def fingerprint() -> str:
    """Return a digest of the complete results of many random plans."""
    found = sha256()
    for seed in range(PLANS):
        draw = random.Random(seed)
        state = draw_state(draw)
        made = plan_reshape(facts_of(state), NOW, document(draw_plan(draw, state)))
        found.update(json.encode([made.digest, made.effects, made.violations, made.summary]))
        found.update(json.encode([made.generations, made.inverse]))
    return found.hexdigest()


def elsewhere(hash_seed: int) -> str:
    """Return the fingerprint of a process that orders its sets otherwise."""
    code = f"from {__name__} import fingerprint; print(fingerprint())"
    environment = {
        **os.environ,
        "PYTHONHASHSEED": str(hash_seed),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout.strip()


def test_every_process_plans_alike() -> None:
    """Results are equal byte for byte, whatever the hashes of strings are."""
    assert elsewhere(1) == elsewhere(2)
