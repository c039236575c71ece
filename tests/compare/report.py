"""The texts that show differences."""

import re
from collections import Counter

from tests.compare.playing import Finding, Outcome

TEXT_MAX = 900
NAMES = re.compile(r"\b(CUSTOM_\w+|VCPU|MEMORY_MB|DISK_GB|HW_\w+|MISC_\w+)\b")
UUIDS = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
TIMES = re.compile(r"\w{3}, \d\d \w{3} \d{4} [0-9:]{8} GMT")
SCHEMA = re.compile(
    r"(JSON does not validate|Malformed JSON|query string parameters): .*?(\n +[-+] |$)", re.S
)


def kind_of(finding: Finding) -> str:
    """Return what findings of one kind have in common: call, statuses and place."""
    one = finding.exchange
    statuses = f"{one.theirs.status} {one.ours.status}"
    return plainer(f"{one.ask.what}: {statuses}, {finding.difference.aspect}")


def kind_in_words(finding: Finding) -> str:
    """Return `kind_of`, and the differing texts without the names in them."""
    of = finding.difference
    text = kind_of(finding)
    if isinstance(of.theirs, str) and isinstance(of.ours, str):
        text += plainer(f"\n    - {of.theirs[-300:]}\n    + {of.ours[-300:]}")
    return text


def plainer(text: str) -> str:
    """Return the text without the names of individual objects."""
    text = TIMES.sub("TIME", SCHEMA.sub(r"\1 ...\2", text))
    text = NAMES.sub("NAME", UUIDS.sub("UUID", text))
    return re.sub(r"/\d+\b", "/N", re.sub(r"\bname-\d+", "name-N", text))


def shown(finding: Finding) -> str:
    """Return a finding as a paragraph with both answers."""
    one, of = finding.exchange, finding.difference
    return (
        f"  {finding.engine}: {of.aspect}\n"
        f"    original: {one.theirs.status} {str(of.theirs)[:TEXT_MAX]!r}\n"
        f"    {finding.engine}: {one.ours.status} {str(of.ours)[:TEXT_MAX]!r}"
    )


def shown_differences(outcome: Outcome) -> str:
    """Return the text of a short sequence and of the first difference."""
    finding = outcome.findings[0]
    known = finding.exchange.known
    lines = [f"{n}. {ask.text(known)}" for n, ask in enumerate(outcome.sent, 1)]
    if finding.exchange.ask is not outcome.sent[-1]:
        lines.append(f"then: {finding.exchange.ask.text(known)}")
    return "\n".join(["the answers to these requests differ:", *lines, shown(finding)])


class Survey:
    """All kinds of differences, how often each was found, and an example of each."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self._examples: dict[str, str] = {}

    def add(self, outcome: Outcome) -> None:
        """Count the findings of a sequence."""
        for finding in outcome.findings:
            kind = kind_in_words(finding)
            self.kinds[kind] += 1
            if kind not in self._examples:
                asked = finding.exchange.ask.text(finding.exchange.known)[:TEXT_MAX]
                self._examples[kind] = f"    {asked}\n{shown(finding)}\n"

    def merge(self, other: "Survey") -> None:
        """Add the counts of another survey."""
        self.kinds += other.kinds
        self._examples = {**other._examples, **self._examples}

    def text(self) -> str:
        """Return all kinds, the most frequent first."""
        return "\n".join(
            f"{count:6} {kind}\n{self._examples[kind]}" for kind, count in self.kinds.most_common()
        )
