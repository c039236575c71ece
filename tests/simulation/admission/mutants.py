"""`python -m tests.simulation.admission.mutants`: plants one bug after the other and looks whether
the simulator catches it.

Each bug is a replacement of text in a copy of the tree; nothing is changed here. A bug whose text
is not there any more is an error: it is to be planted anew. Ends with 1 if one of them is missed.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SECONDS_MAX = 120
"""Longer than any bug takes to be caught; who goes round in circles has not passed either."""

RULES, SERVICE = "rules", "service"
"""What hunts a bug: seeds on the pure rules, or around the whole service."""


@dataclass(frozen=True)
class Bug:
    """What is broken: invariant, what it is in words, where, and which text becomes which."""

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
        "return {FREE: pool.spec.limit - pool.occupied - idle}",
        "return {FREE: pool.spec.limit - pool.occupied - idle + 1}",
    ),
    Bug(
        "I1",
        "a lowered limit is not looked at",
        f"{CORE}/rules.py",
        "if units > limit_of(facts, pool):",
        "if units > 1_000_000:",
    ),
    Bug(
        "I2",
        "a slot that is held is granted",
        f"{CORE}/slots.py",
        "if not slot.owner and slot.state == state]",
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
        f"{CORE}/asking.py",
        "if proof.token is not None and str(proof.token) != str(lease.token):",
        "if proof.token is not None and not str(proof.token):",
    ),
    Bug(
        "I5",
        "who is silent keeps its units",
        f"{CORE}/ending.py",
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
        "Instant(max(lease.heard_until, moment.alive + span))",
        "lease.heard_until",
    ),
    Bug(
        "I7",
        "a ticket is withdrawn although it is polled",
        f"{CORE}/leases.py",
        "and until > found.heard_until:\n",
        "and until > found.heard_until + 3_600_000_000:\n",
    ),
    Bug(
        "I7",
        "who retries loses its ticket",
        f"{CORE}/leases.py",
        "    _ask(draft, new, old.arrival if keeps else None)\n",
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
        "            left[need.state] = max(0, left.get(need.state, 0) - need.units)\n",
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
        f"{CORE}/asking.py",
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
        "        if self.short:\n            raise LineShort(self.short)\n",
        "",
    ),
    Bug(
        "I12",
        "many units pay for one",
        f"{CORE}/pacing.py",
        "max(at, pool.paced_at) + units * step",
        "max(at, pool.paced_at) + step",
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
        f"{CORE}/timeline.py",
        "        skew += expected_wall - wall\n",
        "        skew += 0\n",
    ),
    Bug(
        "I16",
        "an outage counts as silence",
        f"{CORE}/timeline.py",
        "        downtime += at - lived_at\n",
        "        downtime += 0\n",
    ),
    Bug(
        "I16",
        "a quick restart counts as silence",
        f"{CORE}/timeline.py",
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
        f"{CORE}/rules.py",
        "if quota is not None and units + granted > quota:",
        "if quota is not None and granted > quota:",
    ),
    Bug(
        "I19",
        "a slot is shown as held after its lease",
        f"{CORE}/slots.py",
        'slot, owner="", lease=None, state=state,',
        "slot, state=state,",
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
        "src/moorage/service/leasing.py",
        "leases.anew(old, self.fresh, self.key).heard(until)",
        "leases.anew(old, self.fresh, self.key)",
        SERVICE,
    ),
    Bug(
        "I11",
        "what a lease held in the ledger stays there",
        "src/moorage/service/granting.py",
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
        "src/moorage/service/transactor.py",
        "            if made.written:\n",
        "            if made.revision is not None:\n",
        SERVICE,
    ),
    Bug(
        "I15",
        "followers are not told of an end",
        "src/moorage/store/admission_rows.py",
        '        yield "lease", key, _body(lease)\n',
        '        if lease is None or lease.state != "ended":\n'
        '            yield "lease", key, _body(lease)\n',
        SERVICE,
    ),
    Bug(
        "I18",
        "a new quota does not count what was held before",
        "src/moorage/service/pooling.py",
        "quotas=set() if self.spec.quota is None else {self.name}",
        "quotas=set()",
        SERVICE,
    ),
)


def broken(bug: Bug) -> str:
    """Return the text of a file with this bug in it. Raises ValueError: it cannot be planted."""
    text = (ROOT / bug.path).read_text()
    if text.count(bug.text) != 1:
        raise ValueError(
            f"{bug.invariant} {bug.said}: its text stands {text.count(bug.text)} times"
        )
    return text.replace(bug.text, bug.wrong)


def planted(folder: Path, bug: Bug) -> Path:
    """Return a copy of the tree with this bug in it."""
    tree = folder / f"{BUGS.index(bug)}"
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tree)
    (tree / bug.path).write_text(broken(bug))
    return tree


def hunted(folder: Path, bug: Bug) -> tuple[Bug, str]:
    """Return how a bug was caught; empty: it was missed."""
    tree = planted(folder, bug)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tests.simulation.admission.hunt", bug.hunter],
            cwd=tree,
            env={"PYTHONPATH": f"{tree / 'src'}:{tree}", "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return bug, f"it never came to an end within {SECONDS_MAX} s"
    finally:
        shutil.rmtree(tree)
    if done.returncode == 0:
        return bug, ""
    return bug, (done.stdout or done.stderr).strip().splitlines()[-1]


def results() -> Iterator[tuple[Bug, str]]:
    """Hunt all bugs, two at a time, in order."""
    with (
        tempfile.TemporaryDirectory(prefix="moorage-mutants-") as folder,
        ThreadPoolExecutor(2) as pool,
    ):
        yield from pool.map(lambda bug: hunted(Path(folder), bug), BUGS)


def main() -> int:
    """Print what was caught and what was missed."""
    missed = 0
    for bug, how in results():
        missed += not how
        word = "caught" if how else "MISSED"
        sys.stdout.write(f"{word}  {bug.invariant:4} {bug.said}: {how[:100]}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{len(BUGS) - missed} of {len(BUGS)} caught\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
