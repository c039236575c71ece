"""What an audit of the ledger prints: a table of findings, or JSON."""

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from moorage.cli.support.output import say, show_json
from moorage.cli.support.tables import Column, show_rows

if TYPE_CHECKING:
    from moorage.integrations.nova.audit import Report
    from moorage.integrations.nova.findings import Finding

COLUMNS = (
    Column("code"),
    Column("host", least=12),
    Column("subject"),
    Column("heals", dropped=1),
    Column("finding", least=16, last=True),
)


def show(report: "Report", *, as_json: bool, wide: bool) -> None:
    """Print what was found, and what is unclear."""
    if as_json:
        show_json(document_of(report))
        return
    rows = [
        [one.code, one.host, one.consumer or one.provider, _healed(one), one.message]
        for one in report.findings
    ]
    rows += [["unclear", "-", one.subject, "-", one.reason] for one in report.unclear]
    if rows:
        show_rows(COLUMNS, rows, wide=wide)
    counts = Counter(one.code for one in report.findings)
    said = ", ".join(f"{count} {code}" for code, count in sorted(counts.items()))
    looked = ", ".join(f"{count} {what}" for what, count in report.looked_at.items())
    say(f"moorage: compared {looked}: {said or 'no finding'}", err=True)
    if report.unclear:
        say(f"moorage: {len(report.unclear)} unclear: audit again later", err=True)


def document_of(report: "Report") -> dict[str, Any]:
    """Return a report for JSON."""
    return {
        "looked_at": report.looked_at,
        "findings": [{**asdict(one), "healable": one.is_healable} for one in report.findings],
        "unclear": [asdict(one) for one in report.unclear],
    }


def _healed(one: "Finding") -> str:
    return "yes" if one.is_healable else "no"
